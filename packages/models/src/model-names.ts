import {nameLengthMax} from '@hearsay/core';

/** Where a file stands among the shards of its model, by its name. */
export interface ShardPosition {
  /** File name without the shard suffix and extension. */
  readonly stem: string;
  /** Counted from 1. */
  readonly index: number;
  readonly count: number;
}

/** Hidden files are left out: on disks that met a Mac, every `x.gguf` has a `._x.gguf` that is no model. */
export function isModelFileName(fileName: string): boolean {
  return /^[^.].*\.gguf$/isu.test(fileName);
}

export type FileRole = 'model' | 'projector' | 'draft';

/** What a file is by its name: programs that fetch models go by it, and so does llama-server. */
export function roleOf(fileName: string): FileRole {
  if (projectorMark.test(fileName)) return 'projector';
  return /^(?:mtp|eagle3|dflash|dspark)-/iu.test(fileName) ? 'draft' : 'model';
}

/** Alone, or with something before and after that says whose it is. */
const projectorMark = /(?:^|[-_.])mmproj(?=[-_.]|$)/iu;

/** What is left of a projector's name without that word: what it says of the model that it belongs to. */
export function projectorClues(fileName: string): {readonly before: string; readonly after: string} {
  const [before = '', after = ''] = fileName.replace(/\.gguf$/iu, '').split(projectorMark, 2);
  return {before, after: withoutQuant(after).replace(/^[-_.]/u, '')};
}

/**
 * The quantization at the end of a file's stem, in capitals as programs write it: `Q4_K_M` of `qwen3-8b-q4_k_m`. With
 * `UD-` before it where the file says so.
 */
export function quantOf(stem: string): string | undefined {
  return quantMark.exec(stem)?.[1]?.toUpperCase();
}

/** A model's stem without its quantization: the same for all files of one model. */
export function withoutQuant(stem: string): string {
  return stem.replace(quantMark, '');
}

const quantMark = /(?:^|[-_.])((?:UD-)?(?:I?Q\d|TQ\d|F16|F32|BF16|MXFP4|NVFP4)[A-Z0-9_]*)$/iu;

/** Reads `stem-00002-of-00003.gguf`; undefined for a file that is no shard. */
export function parseShardName(fileName: string): ShardPosition | undefined {
  const [, stem, index, count] = /^(.+)-(\d{5})-of-(\d{5})\.gguf$/iu.exec(fileName) ?? [];
  if (stem === undefined) return undefined;
  const position = {stem, index: Number(index), count: Number(count)};
  return position.index >= 1 && position.index <= position.count ? position : undefined;
}

/**
 * What people call the model in this file: never a path (R78), no shard suffix (R73), nothing that garbles a
 * terminal.
 */
export function modelNameOf(fileName: string): string {
  const stem = parseShardName(fileName)?.stem ?? fileName.replace(/\.gguf$/iu, '');
  return printableName(stem);
}

/** Letters composed the same way wherever the name comes from: what a Mac writes must match what people type. */
export function printableName(text: string): string {
  return text.normalize('NFC').replaceAll(/\p{C}/gu, '_').slice(0, nameLengthMax);
}
