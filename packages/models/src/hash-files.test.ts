import {createHash} from 'node:crypto';
import {mkdtemp, rm, truncate, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {measureTurns} from '../../../test/support/loop-turns.ts';
import {openDoor as door} from './file-door.ts';
import {lookAt} from './file-stamp.ts';
import type {FileStamp} from './file-stamp.ts';
import {hashFile, modelDigest} from './hash-files.ts';

const {signal} = new AbortController();
const always = {door, goOn: () => true};

async function makeFile(t: ExecutionContext, content: string | Buffer): Promise<FileStamp> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-hash-'));
  t.teardown(() => rm(folder, {recursive: true, force: true}));
  const path = join(folder, 'm.gguf');
  await writeFile(path, content);
  return stampOf(path);
}

async function stampOf(path: string): Promise<FileStamp> {
  const stamp = await lookAt(path, door);
  if (!stamp) throw new Error(`${path} is gone`);
  return stamp;
}

test('the digest of one file is the sha256 of its bytes', async t => {
  const stamp = await makeFile(t, 'abc');
  const hash = await hashFile(stamp, always, signal);
  // The test vector of FIPS 180-2.
  t.is(hash, 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  t.is(modelDigest([hash ?? '']).toString(), `sha256:${hash}`);
});

test('the digest of several files is the sha256 over their digests, and their order counts', t => {
  const [a, b] = ['aa'.repeat(32), 'bb'.repeat(32)];
  const expected = createHash('sha256').update(Buffer.concat([Buffer.alloc(32, 0xaa), Buffer.alloc(32, 0xbb)]));
  t.is(modelDigest([a, b]).toString(), `sha256:${expected.digest('hex')}`);
  t.not(modelDigest([a, b]), modelDigest([b, a]));
});

test('progress counts every byte once', async t => {
  const stamp = await makeFile(t, Buffer.alloc(1_000_001, 1));
  let total = 0;
  await hashFile(stamp, {door, goOn: count => (total += count) > 0}, signal);
  t.is(total, 1_000_001);
});

test('S64: a file that changed since it was stamped has no hash', async t => {
  const stamp = await makeFile(t, Buffer.alloc(600_000, 1));
  t.is(await hashFile({...stamp, mtimeMs: stamp.mtimeMs - 1}, always, signal), undefined);
  let turns = 0;
  const hash = await hashFile(
    stamp,
    {
      door,
      goOn: () => {
        turns += 1;
        return true;
      },
    },
    signal,
  );
  t.truthy(hash);
  t.true(turns > 1);
  await truncate(stamp.path, 500_000);
  t.is(await hashFile(stamp, always, signal), undefined);
  await writeFile(stamp.path, Buffer.alloc(700_000, 1));
  t.is(await hashFile(stamp, always, signal), undefined);
});

test('hashing stops when told so', async t => {
  const stamp = await makeFile(t, Buffer.alloc(2_000_000, 1));
  let turns = 0;
  t.is(await hashFile(stamp, {door, goOn: () => (turns += 1) < 2}, signal), undefined);
  t.is(turns, 2);
  const reason = new Error('closing');
  await t.throwsAsync(hashFile(stamp, always, AbortSignal.abort(reason)), {is: reason});
});

test('hashing a gigabyte holds the event loop for less than 50 ms at a time', async t => {
  const small = await makeFile(t, '');
  await truncate(small.path, 2 ** 30);
  const stamp = await stampOf(small.path);
  const turns = measureTurns();
  t.is(await hashFile(stamp, always, signal), '49bc20df15e412a64472421e13fe86ff1c5165e18b2afccf160d4dc19fe68a14');
  const {percentileMs, longestMs} = turns.stop();
  t.log(`longest turn ${longestMs.toFixed(1)} ms, 99.9 % below ${percentileMs(0.999).toFixed(1)} ms`);
  t.true(percentileMs(0.999) < 50, `${percentileMs(0.999)} ms`);
});
