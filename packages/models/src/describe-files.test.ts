import {copyFile, mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {encodeGguf, tensor, text} from '../../../scripts/tiny-models/gguf-writer.ts';
import {makeTinyModels} from '../../../scripts/make-tiny-models.ts';
import {describeFiles} from './describe-files.ts';
import {describeGguf} from './describe-gguf.ts';
import {openDoor} from './file-door.ts';
import {lookAt} from './file-stamp.ts';
import type {FileStamp} from './file-stamp.ts';
import type {Description} from './list-models.ts';
import {readGguf} from './read-gguf.ts';

const shards = ['tiny-split-00001-of-00002.gguf', 'tiny-split-00002-of-00002.gguf'] as const;

async function makeFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-describe-'));
  t.teardown(() => rm(folder, {recursive: true, force: true}));
  await makeTinyModels(folder, ['tiny-deep-F16', 'tiny-split']);
  return folder;
}

async function describe(...paths: readonly [string, ...string[]]): Promise<Description> {
  const [first, ...others] = await Promise.all(paths.map(stampOf));
  if (!first) throw new Error('no file');
  const holding = {files: [first, ...others], projector: undefined, door: openDoor} as const;
  return describeFiles(holding, async architecture => architecture !== 'llamo', new AbortController().signal);
}

async function stampOf(path: string): Promise<FileStamp> {
  return (await lookAt(path, openDoor)) ?? {path, sizeBytes: 0, mtimeMs: 0, inode: 0};
}

function problemIn(description: Description): string {
  return description.kind === 'unusable' ? description.problem : '';
}

test('a model needs its weights, the cache of one slot at 8192 tokens, working memory and 64 MiB', async t => {
  const path = join(await makeFolder(t), 'tiny-deep-F16.gguf');
  const {weightsBytes, vocabularySize, embeddingLength} = describeGguf([await readGguf(path)]);
  // 256 layers with one head of 32 keys and 32 values, two bytes each.
  const cacheBytes = 8192 * 256 * (32 + 32) * 2;
  const computeBytes = 512 * 4 * (vocabularySize + 2 * embeddingLength);
  const description = await describe(path);
  t.is(description.needBytes, weightsBytes + cacheBytes + computeBytes + 64 * 2 ** 20);
  t.is(description.contextMax, 8192);
});

test('R73: the weights of all shards count', async t => {
  const folder = await makeFolder(t);
  const [first, second] = [join(folder, shards[0]), join(folder, shards[1])];
  const [whole, half] = [await describe(first, second), await describe(first)];
  t.is(whole.kind, 'usable');
  const {tensors} = await readGguf(second);
  t.is((whole.needBytes ?? 0) - (half.needBytes ?? 0), tensors.weightsBytes);
  t.is((whole.parameters ?? 0) - (half.parameters ?? 0), tensors.parameters);
});

test('R73: the message names the shard that is damaged', async t => {
  const folder = await makeFolder(t);
  const second = join(folder, shards[1]);
  await writeFile(second, (await readFile(second)).subarray(0, -1000));
  const description = await describe(join(folder, shards[0]), second);
  t.regex(problemIn(description), /^shard 2 of 2: .*incomplete/u);
  t.is(description.architecture, 'llama');
});

test('R75: a shard with a name that llama-server refuses is unusable, and so is a whole model named like a shard', async t => {
  const folder = await makeFolder(t);
  const [plain, suffixed] = [join(folder, 'plain.gguf'), join(folder, 'deep-00001-of-00002.gguf')];
  await copyFile(join(folder, shards[0]), plain);
  await copyFile(join(folder, 'tiny-deep-F16.gguf'), suffixed);
  t.regex(problemIn(await describe(plain)), /one of 2 shards by its header/u);
  t.regex(problemIn(await describe(suffixed)), /whole model by its header/u);
});

test('a file that cannot be read is worth another try, a damaged one is not', async t => {
  const folder = await makeFolder(t);
  const page = join(folder, 'page.gguf');
  await writeFile(page, '<html>');
  const [gone, damaged] = [await describe(join(folder, 'gone.gguf')), await describe(page)];
  t.true(gone.kind === 'unusable' && gone.retry);
  t.true(damaged.kind === 'unusable' && !damaged.retry);
});

test('a model of an architecture that the engine does not know is unusable, and so is one of none', async t => {
  const folder = await makeFolder(t);
  for (const [name, metadata] of [
    ['llamo', new Map([['general.architecture', text('llamo')]])],
    ['none', new Map([['general.name', text('none')]])],
  ] as const) {
    await writeFile(
      join(folder, name),
      encodeGguf({metadata, tensors: [tensor('a', [32], new Float32Array(32), 'F16')]}),
    );
  }
  t.regex(problemIn(await describe(join(folder, 'llamo'))), /unknown architecture 'llamo'/u);
  t.regex(problemIn(await describe(join(folder, 'none'))), /names no architecture/u);
});
