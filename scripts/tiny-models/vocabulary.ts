import {bool, float32s, int32s, text, texts, uint32, type MetadataValue} from './gguf-writer.ts';

/** What a token is, in the numbers of the file format. */
export const tokenTypes = {normal: 1, unknown: 2, control: 3, unused: 5, byte: 6} as const;

export interface Token {
  readonly text: string;
  readonly score: number;
  readonly type: (typeof tokenTypes)[keyof typeof tokenTypes];
}

/** A vocabulary that can write any text in single bytes and characters, followed by the pieces of one model. */
export interface Vocabulary {
  readonly tokens: readonly Token[];
  readonly endOfTurn: number;
  /** Where each piece stands, in the order given. */
  readonly pieces: readonly number[];
}

const special = ['<s>', '</s>', '<|im_start|>', '<|im_end|>', '<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>'];

const [beginOfText, endOfText, endOfTurn, fimPrefix, fimSuffix, fimMiddle] = [1, 2, 4, 5, 6, 7];

/** Pieces must be unique; spaces in them are written as the format wants them. A higher score wins when text is cut into tokens. */
export function vocabulary(pieces: readonly string[], score: (piece: string) => number): Vocabulary {
  const tokens: Token[] = [
    {text: '<unk>', score: 0, type: tokenTypes.unknown},
    ...special.map(name => ({text: name, score: 0, type: tokenTypes.control})),
    ...Array.from({length: 256}, (_, byte) => byteToken(byte)),
    {text: '▁', score: -1, type: tokenTypes.normal},
    ...printable().map(character => ({text: character, score: -1, type: tokenTypes.normal})),
  ];
  const firstPiece = tokens.length;
  for (const piece of pieces) {
    tokens.push({text: piece.replaceAll(' ', '▁'), score: score(piece), type: tokenTypes.normal});
  }
  while (tokens.length % 32 !== 0) tokens.push({text: `<|pad${tokens.length}|>`, score: -1000, type: tokenTypes.unused});
  return {tokens, endOfTurn: endOfTurn ?? 0, pieces: pieces.map((_, index) => firstPiece + index)};
}

/** What the header says about a vocabulary. `insert` declares the tokens for filling in the middle of a text. */
export function vocabularyMetadata({tokens}: Vocabulary, insert: boolean): [string, MetadataValue][] {
  const insertTokens: [string, MetadataValue][] = [
    ['tokenizer.ggml.fim_pre_token_id', uint32(fimPrefix ?? 0)],
    ['tokenizer.ggml.fim_suf_token_id', uint32(fimSuffix ?? 0)],
    ['tokenizer.ggml.fim_mid_token_id', uint32(fimMiddle ?? 0)],
  ];
  return [
    ['tokenizer.ggml.model', text('llama')],
    ['tokenizer.ggml.pre', text('default')],
    ...tokenMetadata(tokens),
    ['tokenizer.ggml.bos_token_id', uint32(beginOfText ?? 0)],
    ['tokenizer.ggml.eos_token_id', uint32(endOfText ?? 0)],
    ['tokenizer.ggml.eot_token_id', uint32(endOfTurn ?? 0)],
    ['tokenizer.ggml.unknown_token_id', uint32(0)],
    ...(insert ? insertTokens : []),
    ['tokenizer.ggml.add_bos_token', bool(true)],
    ['tokenizer.ggml.add_eos_token', bool(false)],
    ['tokenizer.ggml.add_space_prefix', bool(false)],
  ];
}

export function tokenMetadata(tokens: readonly Token[]): [string, MetadataValue][] {
  return [
    ['tokenizer.ggml.tokens', texts(tokens.map(token => token.text))],
    ['tokenizer.ggml.scores', float32s(tokens.map(token => token.score))],
    ['tokenizer.ggml.token_type', int32s(tokens.map(token => token.type))],
  ];
}

/** Every visible character of ASCII. */
export function printable(): string[] {
  return Array.from({length: 126 - 33 + 1}, (_, index) => String.fromCharCode(33 + index));
}

function byteToken(byte: number): Token {
  const name = byte.toString(16).toUpperCase().padStart(2, '0');
  return {text: `<0x${name}>`, score: 0, type: tokenTypes.byte};
}
