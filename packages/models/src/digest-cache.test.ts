import {mkdtemp, readdir, readFile, rm, stat, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import type {Environment} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {openDigestCache} from './digest-cache.ts';
import type {FileStamp} from './file-stamp.ts';

const stamp: FileStamp = {path: '/m.gguf', sizeBytes: 10, mtimeMs: 1.5, inode: 7};
const hash = 'ab'.repeat(32);

async function makePlace(t: ExecutionContext): Promise<{path: string; environment: Environment; warnings: string[]}> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-cache-'));
  t.teardown(() => rm(folder, {recursive: true, force: true}));
  const warnings: string[] = [];
  const log: Environment['log'] = (level, message) => {
    if (level === 'warn') warnings.push(message);
  };
  return {path: join(folder, 'data', 'digests.json'), environment: {...realEnvironment(), log}, warnings};
}

test('a hash is remembered for the next start, in a file for the owner only', async t => {
  const {path, environment, warnings} = await makePlace(t);
  {
    await using cache = await openDigestCache(path, environment);
    cache.put(stamp, hash);
    t.is(cache.get(stamp)?.sha256, hash);
  }
  await using cache = await openDigestCache(path, environment);
  t.is(cache.get(stamp)?.sha256, hash);
  t.is((await stat(path)).mode % 0o1000, 0o600);
  t.deepEqual(await readdir(join(path, '..')), ['digests.json']);
  t.deepEqual(warnings, []);
});

test('a hash counts only while size, time and inode are the same', async t => {
  const {path, environment} = await makePlace(t);
  await using cache = await openDigestCache(path, environment);
  cache.put(stamp, hash);
  t.is(cache.get({...stamp, sizeBytes: 11}), undefined);
  t.is(cache.get({...stamp, mtimeMs: 1.6}), undefined);
  t.is(cache.get({...stamp, inode: 8}), undefined);
  t.is(cache.get({...stamp, path: '/n.gguf'}), undefined);
});

test('a damaged cache is an empty one with a warning', async t => {
  const {path, environment, warnings} = await makePlace(t);
  {
    await using cache = await openDigestCache(path, environment);
    cache.put(stamp, hash);
  }
  const whole = await readFile(path, 'utf8');
  for (const text of ['', whole.slice(0, -5), whole.replace(hash, 'short'), '{"version":2,"files":[]}', 'null', '[]']) {
    await writeFile(path, text);
    await using cache = await openDigestCache(path, environment);
    t.is(cache.get(stamp), undefined, text);
  }
  t.is(warnings.length, 6);
});

test('a cache that cannot be written is a warning', async t => {
  const {path, environment, warnings} = await makePlace(t);
  await writeFile(join(path, '..', '..', 'file'), '');
  {
    await using cache = await openDigestCache(join(path, '..', '..', 'file', 'digests.json'), environment);
    cache.put(stamp, hash);
  }
  t.true(warnings.some(warning => warning.includes('cannot be written')));
});

test('the number of remembered files is bounded, and the latest stay', async t => {
  const {path, environment} = await makePlace(t);
  {
    await using cache = await openDigestCache(path, environment);
    for (let index = 0; index < 20_010; index += 1) cache.put({...stamp, path: `/${index}`}, hash);
  }
  await using cache = await openDigestCache(path, environment);
  t.is(cache.get({...stamp, path: '/9'}), undefined);
  t.is(cache.get({...stamp, path: '/10'})?.sha256, hash);
  t.is(cache.get({...stamp, path: '/20009'})?.sha256, hash);
});
