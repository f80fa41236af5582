import {readFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import type {Fault} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {
  countToThree,
  hostConfig,
  snapshotOf,
  storedModel,
  temporaryFolder,
} from '../../../test/support/engine-trial.ts';
import {testEngine, tinyModel, trialHost} from '../../../test/support/engine-trial.ts';
import {openMemoryNotes} from './memory-notes.ts';
import {ModelNeeds} from './model-needs.ts';
import {startEngineHost} from './start-engine-host.ts';

const size = {slots: 1, context: 1024};
const shape = {
  weightsBytes: 1e9,
  copiedBytes: 7e8,
  projectorBytes: 0,
  embeddingLength: 1024,
  feedForwardLength: 4096,
  queryLength: 1024,
  vocabularySize: 1000,
  caches: [{layers: 10, keyLength: 256, valueLength: 256, windowTokens: undefined}],
  contextMax: 4096,
};

async function needsOf(extraArguments: readonly string[], own: readonly string[] = []): Promise<ModelNeeds> {
  const environment = realEnvironment();
  const models = {Mine: {context: 512, slots: 3, extraArguments: own}};
  const config = {slots: 4, contextMax: undefined, extraArguments, models, engine: 'test'};
  return new ModelNeeds(config, await openMemoryNotes(undefined, environment), environment.clock);
}

test('what the owner said for one model holds for any of its names, in any case', async t => {
  const needs = await needsOf(['-a1'], ['-b2']);
  const model = {...storedModel('other', '/m'), names: ['other', 'mine']} as const;
  const wish = {slots: 3, slotsMax: 4, context: 512, contextMax: undefined, contextWanted: undefined};
  t.deepEqual(needs.wish(model), wish);
  t.deepEqual(needs.ownArguments(model), ['-a1', '-b2'], 'its own come last, so that they win');
  t.deepEqual(needs.ownArguments(storedModel('x', '/x')), ['-a1']);
});

test('what the owner said holds however the name is written, as in a request', async t => {
  const needs = await needsOf([], ['-b2']);
  for (const name of ['MINE:latest', 'hf.co/mine', 'mine'])
    t.deepEqual(needs.ownArguments(storedModel(name, '/m')), ['-b2'], name);
  t.deepEqual(needs.ownArguments(storedModel('mine:q4', '/m')), []);
});

test('the arguments for the cache and against the copy change the estimate', async t => {
  const model = storedModel('x', '/x', {shape});
  const estimate = async (...own: readonly string[]) => (await needsOf(own)).estimate(model, size, 'ram');
  const usual = await estimate();
  t.is(usual - (await estimate('--no-repack')), 7e8);
  t.is(usual - (await estimate('-ctk', 'q8_0')), 10 * 256 * 1024 * (2 - 34 / 32));
});

test('an argument that would open a door or falsify the memory ends the start, with the reason', async t => {
  const folder = join(await temporaryFolder(t), 'run');
  const starts = [
    [{extraArguments: ['--port', '1']}, /^engine\.extra_args must not have --port/u],
    [{models: {m: {extraArguments: ['--host', '0.0.0.0']}}}, /of the model "m" must not have --host/u],
  ] as const;
  for (const [changes, message] of starts) {
    const started = startEngineHost(hostConfig(folder, changes), realEnvironment());
    const fault = await t.throwsAsync<Fault>(started, {message});
    t.is(fault?.code, 'BAD_CONFIG');
  }
});

test('what a real load took is in the notes, and says for which size and engine', async t => {
  const memoryFile = join(await temporaryFolder(t), 'memory.json');
  const host = await trialHost(t, {memoryFile, slots: 2});
  const model = await tinyModel('tiny-count-F16');
  await countToThree(host, model);
  t.like(snapshotOf(host, model), {slots: 2, context: 2048});
  await host[Symbol.asyncDispose]();
  const {loads}: {loads: Record<string, unknown>[]} = JSON.parse(await readFile(memoryFile, 'utf8'));
  t.is(loads.length, 1);
  const {takenBytes, ...key} = loads[0] ?? {};
  t.like(key, {digest: model.digest, context: 2048, slots: 2, place: 'ram', engine: 'test engine'});
  t.true(typeof takenBytes === 'number' && takenBytes > 10e6 && takenBytes < 100e6, JSON.stringify(loads));
});

test('a model gets its own slots and context, and llama-server is told so', async t => {
  const host = await trialHost(t, {models: {'TINY-COUNT-F16': {slots: 1, context: 512, keep: true}}});
  const model = await tinyModel('tiny-count-F16');
  await countToThree(host, model);
  t.like(snapshotOf(host, model), {slots: 1, context: 512, unloadInMs: Infinity});
  const command = await readFile(`/proc/${snapshotOf(host, model)?.processId}/cmdline`, 'utf8');
  t.regex(command.replaceAll('\0', ' '), new RegExp(`^${testEngine()} .* -c 512 -np 1 `, 'u'));
});
