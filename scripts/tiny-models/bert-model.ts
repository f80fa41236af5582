import {bool, float32, tensor, text, uint32, type GgufContent, type MetadataValue, type Tensor} from './gguf-writer.ts';
import {randomNumbers, type RandomNumbers} from './random-numbers.ts';
import {tokenMetadata, tokenTypes, visibleCharacters, type Token} from './vocabulary.ts';

/**
 * `vectors` answers with embeddings, `scores` judges how well a document fits a question. Both are random, but always
 * the same.
 */
export type BertKind = 'vectors' | 'scores';

const width = 64;
const layers = 2;
const heads = 4;
const feedForward = 128;
const contextTokens = 512;

const words =
  'the a cat dog sat on mat hello world one two three car fast slow sky blue red is are was king queen paris france';

const poolings = {vectors: 1, scores: 4} as const;

/** A model of the bert architecture: equal texts get equal vectors, texts that share words get similar ones. */
export function bertContent(name: string, kind: BertKind): GgufContent {
  const random = randomNumbers(3);
  const tokens = bertTokens();
  return {
    metadata: bertMetadata(name, kind, tokens),
    tensors: [
      ...tokenTensors(tokens.length, random),
      ...Array.from({length: layers}, (_, layer) => layerTensors(layer, random)).flat(),
      ...(kind === 'scores' ? scoreTensors(random) : []),
    ],
  };
}

/** A token that begins a word carries the mark "▁", one that goes on does not. */
function bertTokens(): readonly Token[] {
  const characters = visibleCharacters().filter(character => !/[A-Z]/u.test(character));
  const texts = new Set(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']);
  for (const start of [...characters, ...words.split(' ')]) texts.add(`▁${start}`);
  for (const character of characters) texts.add(character);
  while (texts.size % 32 !== 0) texts.add(`[unused${texts.size}]`);
  const special = [tokenTypes.control, tokenTypes.unknown, tokenTypes.control, tokenTypes.control, tokenTypes.control];
  return [...texts].map((name, index) => ({text: name, score: -1000, type: special[index] ?? tokenTypes.normal}));
}

function bertMetadata(name: string, kind: BertKind, tokens: readonly Token[]): Map<string, MetadataValue> {
  return new Map([
    ['general.architecture', text('bert')],
    ['general.name', text(name)],
    ['general.type', text('model')],
    ['general.file_type', uint32(1)],
    ['bert.context_length', uint32(contextTokens)],
    ['bert.embedding_length', uint32(width)],
    ['bert.block_count', uint32(layers)],
    ['bert.feed_forward_length', uint32(feedForward)],
    ['bert.attention.head_count', uint32(heads)],
    ['bert.attention.layer_norm_epsilon', float32(1e-12)],
    ['bert.attention.causal', bool(false)],
    ['bert.pooling_type', uint32(poolings[kind])],
    ['bert.vocab_size', uint32(tokens.length)],
    ['tokenizer.ggml.model', text('bert')],
    ['tokenizer.ggml.pre', text('default')],
    ...tokenMetadata(tokens),
    ['tokenizer.ggml.token_type_count', uint32(2)],
    ['tokenizer.ggml.padding_token_id', uint32(0)],
    ['tokenizer.ggml.unknown_token_id', uint32(1)],
    ['tokenizer.ggml.bos_token_id', uint32(2)],
    ['tokenizer.ggml.cls_token_id', uint32(2)],
    ['tokenizer.ggml.eos_token_id', uint32(3)],
    ['tokenizer.ggml.seperator_token_id', uint32(3)], // the format spells it so
    ['tokenizer.ggml.mask_token_id', uint32(4)],
  ]);
}

function tokenTensors(count: number, random: RandomNumbers): Tensor[] {
  return [
    tensor('token_embd.weight', [width, count], random.bell(count * width, 0.3), 'F16'),
    tensor('token_types.weight', [width, 2], random.bell(2 * width, 0.003), 'F32'),
    tensor('position_embd.weight', [width, contextTokens], random.bell(contextTokens * width, 0.015), 'F32'),
    ...norm('token_embd_norm'),
  ];
}

function layerTensors(layer: number, random: RandomNumbers): Tensor[] {
  const matrix = (name: string, rowLength: number, rows: number): Tensor[] => [
    tensor(`blk.${layer}.${name}.weight`, [rowLength, rows], random.bell(rowLength * rows, 0.06), 'F16'),
    tensor(`blk.${layer}.${name}.bias`, [rows], new Float32Array(rows), 'F32'),
  ];
  return [
    ...['attn_q', 'attn_k', 'attn_v', 'attn_output'].flatMap(name => matrix(name, width, width)),
    ...norm(`blk.${layer}.attn_output_norm`),
    ...matrix('ffn_up', width, feedForward),
    ...matrix('ffn_down', feedForward, width),
    ...norm(`blk.${layer}.layer_output_norm`),
  ];
}

function scoreTensors(random: RandomNumbers): Tensor[] {
  return [
    tensor('cls.weight', [width, width], random.bell(width * width, 0.3), 'F32'),
    tensor('cls.bias', [width], new Float32Array(width), 'F32'),
    tensor('cls.output.weight', [width, 1], random.bell(width, 0.3), 'F32'),
    tensor('cls.output.bias', [1], new Float32Array(1), 'F32'),
  ];
}

function norm(name: string): Tensor[] {
  return [
    tensor(`${name}.weight`, [width], new Float32Array(width).fill(1), 'F32'),
    tensor(`${name}.bias`, [width], new Float32Array(width), 'F32'),
  ];
}
