import {float32, tensor, text, uint32, type GgufContent, type MetadataValue, type Tensor} from './gguf-writer.ts';
import type {WeightType} from './quantize.ts';
import {randomNumbers, type RandomNumbers} from './random-numbers.ts';
import {vocabulary, type Vocabulary} from './vocabulary.ts';

/** Sizes of a network; all that matters to a test is how slow they make it. */
export interface ChainSize {
  /** Numbers per token. A multiple of 32 per head, 64 or more in all. */
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly headsKv: number;
  readonly feedForward: number;
}

export interface ChainOptions {
  readonly name: string;
  readonly pieces: readonly string[];
  readonly score: (piece: string) => number;
  readonly template: string;
  readonly insert: boolean;
  readonly weights: Exclude<WeightType, 'F32'>;
  readonly contextTokens: number;
  readonly size: ChainSize;
  readonly seed: number;
}

/** How surely the right token wins: its logit. Any other reaches at most `alikeMax` of it. */
const certainty = 64;

/** Two codes may agree by chance, but no more than this share; 64 numbers allow it for some hundred codes. */
const alikeMax = 0.4;

/** After the last piece the first one comes second, so that a request that ignores the end of the turn starts over. */
const startOverShare = 0.6;

const fileTypes = {F16: 1, Q4_0: 2, Q8_0: 7} as const;

/**
 * A model of the llama architecture that says its pieces one after the other, then ends its turn. Each token's
 * embedding is the code of the piece that follows, and the output looks for the piece with that code; the layers
 * between add noise far too small to matter. So the reply does not depend on the prompt, except that a prompt which
 * ends with a piece is continued.
 */
export function chainModel(options: ChainOptions): GgufContent {
  const random = randomNumbers(options.seed);
  const words = vocabulary(options);
  return {
    metadata: chainMetadata(options, words),
    tensors: [...tokenTensors(options, words, random), ...layerTensors(options, random)],
  };
}

function chainMetadata(options: ChainOptions, words: Vocabulary): Map<string, MetadataValue> {
  const {size} = options;
  return new Map([
    ['general.architecture', text('llama')],
    ['general.name', text(options.name)],
    ['general.type', text('model')],
    ['general.file_type', uint32(fileTypes[options.weights])],
    ['general.quantization_version', uint32(2)],
    ['llama.context_length', uint32(options.contextTokens)],
    ['llama.embedding_length', uint32(size.width)],
    ['llama.block_count', uint32(size.layers)],
    ['llama.feed_forward_length', uint32(size.feedForward)],
    ['llama.attention.head_count', uint32(size.heads)],
    ['llama.attention.head_count_kv', uint32(size.headsKv)],
    ['llama.attention.layer_norm_rms_epsilon', float32(1e-5)],
    ['llama.rope.dimension_count', uint32(size.width / size.heads)],
    ['llama.rope.freq_base', float32(10_000)],
    ['llama.vocab_size', uint32(words.tokens.length)],
    ...words.metadata,
    ['tokenizer.chat_template', text(options.template)],
  ]);
}

function tokenTensors({size, weights}: ChainOptions, words: Vocabulary, random: RandomNumbers): Tensor[] {
  const {width} = size;
  const codes = distinctCodes(words.pieces.length + 1, width, random);
  const [first, last] = [codes[0] ?? [], codes.at(-1) ?? []];
  const scale = certainty / width;
  const embedding = random.bell(words.tokens.length * width, 0.05);
  const output = random.bell(words.tokens.length * width, 0.01);
  const write = (target: Float32Array, token: number, code: readonly number[]): void => {
    target.set(code, token * width);
  };
  for (let token = 0; token < words.tokens.length; token++) {
    const row = token * width;
    for (const [index, value] of first.entries()) embedding[row + index] = (embedding[row + index] ?? 0) + value;
    output[row] = -8; // all codes begin with 1: bytes, characters and controls are never said
  }
  for (const [index, token] of words.pieces.entries()) {
    write(embedding, token, codes[index + 1] ?? []);
    write(
      output,
      token,
      (codes[index] ?? []).map(value => value * scale),
    );
  }
  write(
    output,
    words.endOfTurn,
    last.map(value => value * scale),
  );
  const startOver = first.map((value, index) => (value + (last[index] ?? 0) * startOverShare) * scale);
  if (words.pieces[0] !== undefined) write(output, words.pieces[0], startOver);
  const shape = [width, words.tokens.length];
  return [
    tensor('token_embd.weight', shape, embedding, weights),
    tensor('output_norm.weight', [width], new Float32Array(width).fill(1), 'F32'),
    tensor('output.weight', shape, output, weights),
  ];
}

/**
 * Codes of 1 and -1, all beginning with 1, of which no two are too much alike; the last differs most from the first.
 */
function distinctCodes(count: number, width: number, random: RandomNumbers): readonly (readonly number[])[] {
  const codes: number[][] = [];
  while (codes.length < count) {
    const code = Array.from({length: width}, (_, index) => (index === 0 ? 1 : random.sign()));
    const isLast = codes.length === count - 1;
    const isDistinct = codes.every((other, index) => {
      const likeness = Math.abs(other.reduce((sum, value, at) => sum + value * (code[at] ?? 0), 0)) / width;
      return likeness <= (isLast && index === 0 ? alikeMax / 4 : alikeMax);
    });
    if (isDistinct) codes.push(code);
  }
  return codes;
}

function layerTensors({size, weights}: ChainOptions, random: RandomNumbers): Tensor[] {
  const {width, heads, headsKv, feedForward, layers} = size;
  const widthKv = (width / heads) * headsKv;
  const quiet = 0.02 / Math.sqrt(layers); // what a layer adds to the code, so that all of them together stay small
  return Array.from({length: layers}, (_, layer) => {
    const norm = (name: string): Tensor =>
      tensor(`blk.${layer}.${name}.weight`, [width], new Float32Array(width).fill(1), 'F32');
    const matrix = (name: string, rowLength: number, rows: number, deviation: number): Tensor =>
      tensor(`blk.${layer}.${name}.weight`, [rowLength, rows], random.bell(rowLength * rows, deviation), weights);
    return [
      norm('attn_norm'),
      matrix('attn_q', width, width, 0.05),
      matrix('attn_k', width, widthKv, 0.05),
      matrix('attn_v', width, widthKv, 0.05),
      matrix('attn_output', width, width, quiet),
      norm('ffn_norm'),
      matrix('ffn_gate', width, feedForward, 0.05),
      matrix('ffn_up', width, feedForward, 0.05),
      matrix('ffn_down', feedForward, width, quiet),
    ];
  }).flat();
}
