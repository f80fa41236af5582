import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import {knownArchitectures} from './known-architectures.ts';

const engine = process.env['HEARSAY_TEST_ENGINE'];
const engineTest = engine === undefined ? test.skip : test;
if (engine === undefined) console.log('skipped: what a real llama-server knows, as HEARSAY_TEST_ENGINE names none');

engineTest('a real llama-server knows its architectures and no others', async t => {
  const knows = knownArchitectures(engine ?? '');
  for (const name of ['llama', 'bert', 'qwen3moe', 'gpt-oss', 't5encoder']) t.true(await knows(name), name);
  for (const name of ['llamo', 'qwen99', 'unknown-thing']) t.false(await knows(name), name);
});

test('an engine whose names cannot be found is not held back', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-known-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true}));
  const script = join(folder, 'llama-server');
  await writeFile(script, '#!/bin/sh\nexec /elsewhere/llama-server "$@"\n');
  t.true(await knownArchitectures(script)('llamo'));
  t.true(await knownArchitectures(join(folder, 'gone'))('llamo'));
});
