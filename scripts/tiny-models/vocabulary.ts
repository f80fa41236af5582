import {bool, float32s, int32s, text, texts, uint32, type MetadataValue} from './gguf-writer.ts';

/** What a token is, in the numbers of the file format. */
export const tokenTypes = {normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6} as const;

export interface Token {
  readonly text: string;
  readonly score: number;
  readonly type: (typeof tokenTypes)[keyof typeof tokenTypes];
}

export interface Vocabulary {
  readonly tokens: readonly Token[];
  readonly endOfTurn: number;
  /** Where each piece stands, in the order given. */
  readonly pieces: readonly number[];
  readonly metadata: readonly [string, MetadataValue][];
}

export interface VocabularyOptions {
  /**
   * What the model says, cut into tokens. Unique. A whole tag (`</think>`) is found in prompts before anything else
   * is.
   */
  readonly pieces: readonly string[];
  /** A piece with a higher score wins when a text is cut into tokens. */
  readonly score: (piece: string) => number;
  /** Declares the three tokens for filling in the middle of a text. */
  readonly insert: boolean;
}

const controls = {'<s>': 1, '</s>': 2, '<|im_start|>': 3, '<|im_end|>': 4} as const;
const insertControls = {'<|fim_prefix|>': 5, '<|fim_suffix|>': 6, '<|fim_middle|>': 7} as const;

/** A vocabulary that can write any text in bytes and single characters, followed by the pieces of one model. */
export function vocabulary({pieces, score, insert}: VocabularyOptions): Vocabulary {
  const names = [...Object.keys(controls), ...(insert ? Object.keys(insertControls) : [])];
  const tokens: Token[] = [
    {text: '<unk>', score: 0, type: tokenTypes.unknown},
    ...names.map(name => ({text: name, score: 0, type: tokenTypes.control})),
    ...Array.from({length: 256}, (_, byte) => byteToken(byte)),
    ...['▁', ...visibleCharacters()].map(character => ({text: character, score: -1, type: tokenTypes.normal})),
  ];
  const firstPiece = tokens.length;
  for (const piece of pieces) {
    const type = /^<[^>]+>$/u.test(piece) ? tokenTypes.userDefined : tokenTypes.normal;
    tokens.push({text: piece.replaceAll(' ', '▁'), score: score(piece), type});
  }
  while (tokens.length % 32 !== 0) {
    tokens.push({text: `<|pad${tokens.length}|>`, score: -1000, type: tokenTypes.unused});
  }
  return {
    tokens,
    endOfTurn: controls['<|im_end|>'],
    pieces: pieces.map((_, index) => firstPiece + index),
    metadata: vocabularyMetadata(tokens, insert),
  };
}

/** The three lists that describe tokens in every kind of vocabulary. */
export function tokenMetadata(tokens: readonly Token[]): [string, MetadataValue][] {
  return [
    ['tokenizer.ggml.tokens', texts(tokens.map(token => token.text))],
    ['tokenizer.ggml.scores', float32s(tokens.map(token => token.score))],
    ['tokenizer.ggml.token_type', int32s(tokens.map(token => token.type))],
  ];
}

/** All visible characters of ASCII. */
export function visibleCharacters(): string[] {
  return Array.from({length: 127 - 33}, (_, index) => String.fromCharCode(33 + index));
}

function vocabularyMetadata(tokens: readonly Token[], insert: boolean): [string, MetadataValue][] {
  const insertMetadata: [string, MetadataValue][] = [
    ['tokenizer.ggml.fim_pre_token_id', uint32(insertControls['<|fim_prefix|>'])],
    ['tokenizer.ggml.fim_suf_token_id', uint32(insertControls['<|fim_suffix|>'])],
    ['tokenizer.ggml.fim_mid_token_id', uint32(insertControls['<|fim_middle|>'])],
  ];
  return [
    ['tokenizer.ggml.model', text('llama')],
    ['tokenizer.ggml.pre', text('default')],
    ...tokenMetadata(tokens),
    ['tokenizer.ggml.bos_token_id', uint32(controls['<s>'])],
    ['tokenizer.ggml.eos_token_id', uint32(controls['</s>'])],
    ['tokenizer.ggml.eot_token_id', uint32(controls['<|im_end|>'])],
    ['tokenizer.ggml.unknown_token_id', uint32(0)],
    ...(insert ? insertMetadata : []),
    ['tokenizer.ggml.add_bos_token', bool(true)],
    ['tokenizer.ggml.add_eos_token', bool(false)],
    ['tokenizer.ggml.add_space_prefix', bool(false)],
  ];
}

function byteToken(byte: number): Token {
  return {text: `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`, score: 0, type: tokenTypes.byte};
}
