import {writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import type {ExecutionContext} from 'ava';
import {counterModel} from '../../scripts/tiny-models/counter-model.ts';
import {modelFolder} from './models.ts';

/**
 * Models that take so much memory that the cost of a process hardly counts: at one slot of 4096 tokens 64 MiB of cache,
 * and about a hundred in all.
 */
const quick = {width: 256, layers: 16, heads: 4, headsKv: 4, feedForward: 64};
const slow = {width: 64, layers: 128, heads: 2, headsKv: 1, feedForward: 64};

/** What tests run them with. */
export const roomyVariables: Readonly<Record<string, string>> = {
  HEARSAY_THREADS: '1',
  HEARSAY_SLOTS: '1',
  HEARSAY_CONTEXT: '4096',
};

/** A folder with one such model for each name; those whose name ends in `slow` take seconds for some hundred tokens. */
export async function roomyModels(t: Pick<ExecutionContext, 'teardown'>, ...names: readonly string[]): Promise<string> {
  const folder = await modelFolder(t);
  for (const name of names) {
    await writeFile(join(folder, `${name}.gguf`), roomyModel(name));
  }
  return folder;
}

/** Each takes a fifth of a second to make, and the tests of a file use the same few again and again. */
const made = new Map<string, Uint8Array>();

function roomyModel(name: string): Uint8Array {
  const known = made.get(name);
  if (known !== undefined) return known;
  const seed = 100 + (name.codePointAt(name.length - 1) ?? 0);
  const model = counterModel({name, seed, contextTokens: 8192, size: name.endsWith('slow') ? slow : quick});
  made.set(name, model);
  return model;
}
