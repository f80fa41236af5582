import {randomUUID} from 'node:crypto';
import {mkdir, readdir, rename, stat, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {parseArgs} from 'node:util';
import {bertContent} from './tiny-models/bert-model.ts';
import {counterContent} from './tiny-models/counter-model.ts';
import {encodeGguf, encodeGgufShards} from './tiny-models/gguf-writer.ts';
import {projectorContent} from './tiny-models/projector.ts';
import {thinkContent, toolContent} from './tiny-models/scripted-model.ts';

/**
 * Makes the models that tests run in real llama-servers: small enough to start in some 20 ms, with replies that a test
 * can predict. Command line: `node scripts/make-tiny-models.ts FOLDER [NAME…]`. The same bytes on every machine.
 */

const deepSize = {width: 64, layers: 256, heads: 2, headsKv: 1, feedForward: 64};

export type TinyModelName =
  | 'tiny-count-F16'
  | 'tiny-count-Q8_0'
  | 'tiny-other-Q4_0'
  | 'tiny-deep-F16'
  | 'tiny-split'
  | 'tiny-tool-F16'
  | 'tiny-think-F16'
  | 'tiny-embed-F16'
  | 'tiny-rerank-F16'
  | 'mmproj-tiny-hearing-F16'
  | 'mmproj-tiny-sight-F16';

/** A split model is several files. */
const makers: Readonly<Record<TinyModelName, () => readonly Uint8Array[]>> = {
  'tiny-count-F16': () => [encodeGguf(counterContent({name: 'Tiny Count'}))],
  'tiny-count-Q8_0': () => [encodeGguf(counterContent({name: 'Tiny Count', weights: 'Q8_0'}))],
  'tiny-other-Q4_0': () => [encodeGguf(counterContent({name: 'Tiny Other', weights: 'Q4_0', count: 300, seed: 7}))],
  'tiny-deep-F16': () => [
    encodeGguf(counterContent({name: 'Tiny Deep', contextTokens: 8192, size: deepSize, seed: 5})),
  ],
  'tiny-split': () => encodeGgufShards(counterContent({name: 'Tiny Split', seed: 9}), 12),
  'tiny-tool-F16': () => [encodeGguf(toolContent())],
  'tiny-think-F16': () => [encodeGguf(thinkContent())],
  'tiny-embed-F16': () => [encodeGguf(bertContent('Tiny Embed', 'vectors'))],
  'tiny-rerank-F16': () => [encodeGguf(bertContent('Tiny Rerank', 'scores'))],
  'mmproj-tiny-hearing-F16': () => [encodeGguf(projectorContent('Tiny Hearing', 'hearing'))],
  'mmproj-tiny-sight-F16': () => [encodeGguf(projectorContent('Tiny Sight', 'sight'))],
};

export const tinyModelNames: readonly TinyModelName[] = Object.keys(makers).filter(isTinyModelName);

/** The file to hand to llama-server: of a split model, the first. */
export function tinyModelFile(name: TinyModelName): string {
  return name === 'tiny-split' ? 'tiny-split-00001-of-00002.gguf' : `${name}.gguf`;
}

/**
 * Makes the models that are missing in the folder, or older than these scripts. Files appear whole or not at all, so
 * several processes may do this at the same time.
 */
export async function makeTinyModels(folder: string, names: readonly TinyModelName[] = tinyModelNames): Promise<void> {
  await mkdir(folder, {recursive: true});
  const changedWallMs = await scriptsChangedWallMs();
  for (const name of names) {
    if (await isNewerThan(changedWallMs, join(folder, tinyModelFile(name)))) continue;
    const files = makers[name]();
    // Last shard first: whoever sees the first one can open them all.
    for (const [index, bytes] of [...files.entries()].toReversed()) {
      await writeWhole(join(folder, fileName(name, index, files.length)), bytes);
    }
  }
}

function fileName(name: TinyModelName, index: number, count: number): string {
  if (count === 1) return `${name}.gguf`;
  return `${name}-${fiveDigits(index + 1)}-of-${fiveDigits(count)}.gguf`;
}

function fiveDigits(value: number): string {
  return String(value).padStart(5, '0');
}

async function writeWhole(path: string, bytes: Uint8Array): Promise<void> {
  const unfinished = `${path}.${randomUUID()}.part`;
  await writeFile(unfinished, bytes);
  await rename(unfinished, path);
}

async function scriptsChangedWallMs(): Promise<number> {
  const folder = join(import.meta.dirname, 'tiny-models');
  const scripts = (await readdir(folder)).map(file => join(folder, file));
  const changes = await Promise.all([import.meta.filename, ...scripts].map(path => stat(path)));
  return Math.max(...changes.map(change => change.mtimeMs));
}

async function isNewerThan(wallMs: number, path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && found.mtimeMs > wallMs;
}

function isTinyModelName(name: string): name is TinyModelName {
  return Object.hasOwn(makers, name);
}

if (import.meta.main) {
  const [folder, ...names] = parseArgs({allowPositionals: true}).positionals;
  if (folder === undefined || !names.every(isTinyModelName)) {
    console.error(`usage: node scripts/make-tiny-models.ts FOLDER [${tinyModelNames.join(' | ')}]…`);
    process.exitCode = 2;
  } else {
    await makeTinyModels(folder, names.length === 0 ? tinyModelNames : names);
  }
}
