import {nameLengthMax} from '@hearsay/core';

/** Where a file stands among the shards of its model, by its name. */
export interface ShardPosition {
  /** File name without the shard suffix and extension. */
  readonly stem: string;
  /** Counted from 1. */
  readonly index: number;
  readonly count: number;
}

/** Files that belong to another model: projectors and draft models. The same prefixes that llama-server skips. */
const companionPrefixes = ['mmproj', 'mtp-', 'eagle3-', 'dflash-', 'dspark-'] as const;

/** Hidden files are left out too: on disks that met a Mac, every `x.gguf` has a `._x.gguf` that is no model. */
export function isModelFileName(fileName: string): boolean {
  const name = fileName.toLowerCase();
  return name.endsWith('.gguf') && !name.startsWith('.') && !companionPrefixes.some(prefix => name.startsWith(prefix));
}

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
  return stem.replaceAll(/\p{C}/gu, '_').slice(0, nameLengthMax);
}
