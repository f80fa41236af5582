import {createHash} from 'node:crypto';
import {mkdtemp, readdir, readFile, rm, stat, utimes, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import {makeTinyModels, tinyModelFile, tinyModelNames} from '../scripts/make-tiny-models.ts';
import {counterModel} from '../scripts/tiny-models/counter-model.ts';
import {encodeWeights} from '../scripts/tiny-models/quantize.ts';

const folder = await mkdtemp(join(tmpdir(), 'hearsay-tiny-'));
test.after.always(async () => {
  await rm(folder, {recursive: true});
});

/** All but the deep one: 16 MB less to write. */
const quick = tinyModelNames.filter(name => name !== 'tiny-deep-F16');

async function hashes(of: string): Promise<Record<string, string>> {
  const names = await readdir(of);
  const contents = await Promise.all(names.map(name => readFile(join(of, name))));
  return Object.fromEntries(names.map((name, index) => [name, sha256(contents[index] ?? new Uint8Array())]));
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

test('two makes give the same bytes, and nothing unfinished stays behind', async t => {
  await Promise.all(['a', 'b'].map(name => makeTinyModels(join(folder, name), quick)));
  const [first, second] = [await hashes(join(folder, 'a')), await hashes(join(folder, 'b'))];
  t.deepEqual(first, second);
  const expected = [...quick.map(tinyModelFile), 'tiny-split-00002-of-00002.gguf'];
  t.deepEqual(Object.keys(first).toSorted(), expected.toSorted());
});

test('every model but the deep one is smaller than a megabyte', async t => {
  const made = join(folder, 'small');
  await makeTinyModels(made, quick);
  for (const name of await readdir(made)) t.true((await stat(join(made, name))).size < 1_000_000, name);
});

test('a model that is there is not made again, unless it is older than the scripts', async t => {
  const made = join(folder, 'again');
  const path = join(made, 'tiny-tool-F16.gguf');
  await makeTinyModels(made, ['tiny-tool-F16']);
  const original = await readFile(path);
  await writeFile(path, 'kept');
  await makeTinyModels(made, ['tiny-tool-F16']);
  t.is(await readFile(path, 'utf8'), 'kept');
  await utimes(path, 1, 1);
  await makeTinyModels(made, ['tiny-tool-F16']);
  t.deepEqual(await readFile(path), original);
});

test('counters with another seed, count or name have other bytes', t => {
  const made = [
    counterModel({name: 'one', count: 50}),
    counterModel({name: 'one', count: 50, seed: 2}),
    counterModel({name: 'one', count: 51}),
    counterModel({name: 'two', count: 50}),
  ];
  t.is(new Set(made.map(sha256)).size, made.length);
});

test('weights at the ends of a block are exact in both quantized types', t => {
  const weights = Float32Array.from({length: 32}, (_, index) => (index === 3 ? -1 : index / 64));
  const eight = Buffer.from(encodeWeights(weights, 'Q8_0'));
  t.is(eight.length, 34);
  t.is(eight.readInt8(2 + 3), -127);
  t.is(eight.readInt8(2 + 31), Math.round((31 / 64) * 127));
  const four = Buffer.from(encodeWeights(weights, 'Q4_0'));
  t.is(four.length, 18);
  t.is(four.readUInt8(2 + 3) & 15, 0); // -8 steps of an eighth
  t.is(four.readUInt8(2 + 15) >> 4, 8 + 4); // 31/64 is four steps
});

test('a scale is written in half precision', t => {
  const weights = new Float32Array(32).fill(127 / 3);
  t.is(new DataView(encodeWeights(weights, 'Q8_0').buffer).getFloat16(0, true), Math.f16round(1 / 3));
});
