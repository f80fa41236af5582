import {mkdtemp, readdir, rename, rm} from 'node:fs/promises';
import {join} from 'node:path';
import type {Clock} from '@hearsay/core';
import {temporaryPrefix} from './engine-store.ts';
import {runCommand} from './run-command.ts';

/** The largest archive has half a gigabyte. */
export const unpackTimeLimitMs: number = 10 * 60_000;

export interface Archive {
  readonly file: string;
  /** On the same file system as the target. */
  readonly work: string;
  readonly target: string;
  /** Unpacks only this folder of it. */
  readonly member?: string;
  /** Undefined: everything but folders. */
  readonly isWanted?: (entry: {readonly name: string; isFile(): boolean}) => boolean;
}

/**
 * Moves the files of an archive into one folder, whatever folders they stood in: llama.cpp looks for its libraries
 * beside the executable and nowhere else.
 */
export async function unpackFlat(
  {file, work, target, member, isWanted}: Archive,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<void> {
  const folder = await mkdtemp(join(work, temporaryPrefix));
  // Every system's tar finds out the compression; on Windows and macOS it reads zip files as well.
  const tar = ['-xf', file, '-C', folder, ...(member === undefined ? [] : [member])];
  await runCommand('tar', tar, {timeLimitMs: unpackTimeLimitMs}, deps, signal);
  for (const entry of await readdir(folder, {recursive: true, withFileTypes: true})) {
    if (entry.isDirectory() || isWanted?.(entry) === false) continue;
    await rename(join(entry.parentPath, entry.name), join(target, entry.name));
  }
  await rm(folder, {recursive: true});
}
