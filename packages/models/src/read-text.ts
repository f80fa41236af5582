import {readFile} from 'node:fs/promises';
import type {FileDoor} from './file-door.ts';
import {lookAt} from './file-stamp.ts';

/** Manifests, templates and settings are some kilobytes; what is larger is something else. */
const textBytesMax = 1024 * 1024;

/** A small text file; undefined when it is not there, cannot be read, or is too large to be what it should. */
export async function readText(path: string, door: FileDoor): Promise<string | undefined> {
  const found = await lookAt(path, door);
  if (found?.kind !== 'file' || found.sizeBytes > textBytesMax) return undefined;
  return door.pass(() => readFile(path, 'utf8').catch(() => undefined));
}
