import {chainModel, type ChainSize} from './chain-model.ts';
import {encodeGguf, type GgufContent} from './gguf-writer.ts';
import type {WeightType} from './quantize.ts';

export interface CounterOptions {
  readonly name: string;
  /** Counts up to here, then ends its turn. At most 400: more codes do not fit the width. */
  readonly count?: number;
  /** Another seed makes a file with other bytes, and so another digest, that behaves the same. */
  readonly seed?: number;
  readonly weights?: Exclude<WeightType, 'F32'>;
  readonly contextTokens?: number;
  readonly size?: ChainSize;
}

const usualSize: ChainSize = {width: 128, layers: 2, heads: 4, headsKv: 2, feedForward: 128};

const template =
  "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}" +
  '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';

/**
 * A chat model that answers anything with " 1 2 3 …" up to its count, at any temperature, and goes on from a number
 * that the prompt ends with. Lost, doubled and reordered pieces of a stream show at once. When the end of the turn is
 * ignored it starts over at 1.
 */
export function counterContent(options: CounterOptions): GgufContent {
  const {count = 400} = options;
  return chainModel({
    name: options.name,
    pieces: Array.from({length: count}, (_, index) => ` ${index + 1}`),
    score: piece => -1 - piece.length, // a shorter number is found first and then grows by a digit
    template,
    insert: true,
    weights: options.weights ?? 'F16',
    contextTokens: options.contextTokens ?? 2048,
    size: options.size ?? usualSize,
    seed: options.seed ?? 1,
  });
}

/** A counter as the bytes of a file, for tests that need several models with different digests. Takes about 10 ms. */
export function counterModel(options: CounterOptions): Uint8Array {
  return encodeGguf(counterContent(options));
}
