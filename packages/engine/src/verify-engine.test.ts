import {mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {Fault} from '@hearsay/core';
import test from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {verifyEngine} from './verify-engine.ts';

const deps = realEnvironment();

/** The real llama-server and a tiny model, which `npm test` prepares. */
function prepared(): {readonly engine: Parameters<typeof verifyEngine>[0]; readonly model: string} {
  const command = process.env['HEARSAY_TEST_ENGINE'];
  const models = process.env['HEARSAY_TEST_MODELS'];
  if (command === undefined || models === undefined)
    throw new Error('HEARSAY_TEST_ENGINE and HEARSAY_TEST_MODELS are not set; run this through npm test');
  return {engine: {command, leadingArguments: []}, model: join(models, 'tiny-count-Q8_0.gguf')};
}

test('the real engine names its version, loads a model and generates a token', async t => {
  const {engine, model} = prepared();
  const notes: string[] = [];
  t.regex(await verifyEngine(engine, model, progress => notes.push(progress.note), deps), /\d/);
  t.deepEqual(notes, ['version', 'a token']);
});

test('a model that the real engine cannot load is a fault with the reason from its log', async t => {
  const {engine, model} = prepared();
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-verify-'));
  t.teardown(() => rm(folder, {recursive: true, force: true}));
  const cut = join(folder, 'cut.gguf');
  await writeFile(cut, (await readFile(model)).subarray(0, 100_000));
  const verifying = verifyEngine(engine, cut, () => {}, deps);
  const fault = await t.throwsAsync(verifying, {instanceOf: Fault, message: /corrupted or incomplete/});
  t.is(fault?.code, 'INSTALL_FAILED');
});

test('an abort stops the engine that is being tried', async t => {
  const {engine, model} = prepared();
  const stop = new AbortController();
  const onProgress = ({note}: {readonly note: string}): void => {
    if (note === 'a token') stop.abort(new Error('no time'));
  };
  await t.throwsAsync(verifyEngine(engine, model, onProgress, deps, stop.signal), {message: 'no time'});
});
