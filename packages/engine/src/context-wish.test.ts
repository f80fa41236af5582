import {writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import type {EngineHost, StoredModel} from '@hearsay/core';
import {counterModel} from '../../../scripts/tiny-models/counter-model.ts';
import {chat, snapshotOf, spoken, storedModel} from '../../../test/support/engine-trial.ts';
import {take, temporaryFolder, trialHost} from '../../../test/support/engine-trial.ts';
import {until} from '../../../test/support/until.ts';
import type {EngineHostConfig} from './start-engine-host.ts';

/** A model that was trained for much, on a host that lets all slots of an engine share 32768 tokens. */
async function roomyHost(
  t: ExecutionContext,
  changes: Partial<EngineHostConfig> = {},
): Promise<{host: EngineHost; model: StoredModel}> {
  const file = join(await temporaryFolder(t), 'long.gguf');
  const size = {width: 64, layers: 2, heads: 2, headsKv: 1, feedForward: 64};
  await writeFile(file, counterModel({name: 'long', seed: 1, contextTokens: 131_072, size}));
  const host = await trialHost(t, {slots: 4, contextMax: undefined, ...changes});
  return {host, model: storedModel('long', file, {contextMax: 131_072})};
}

/** Runs a request that wants so much context; resolves with what its engine has, and the process. */
async function ask(
  host: EngineHost,
  model: StoredModel,
  contextTokens: number | undefined,
): Promise<readonly unknown[]> {
  const answer = host.reserve(model, {force: true, contextTokens});
  if (answer.kind !== 'accepted') throw new Error(answer.kind);
  await spoken(await chat(answer, {tokens: 1}));
  await answer[Symbol.asyncDispose]();
  const {slots, context, processId} = snapshotOf(host, model) ?? {};
  return [`${slots} × ${context}`, processId];
}

test('R106: less context than is loaded, or as much as everybody gets, changes nothing', async t => {
  const {host, model} = await roomyHost(t);
  const first = await ask(host, model, undefined);
  t.is(first[0], '4 × 8192');
  for (const contextTokens of [1, 4096, 8192]) t.deepEqual(await ask(host, model, contextTokens), first);
});

test('R106: more context than is loaded is given to an idle engine, once, and nobody takes it back', async t => {
  const {host, model} = await roomyHost(t);
  const first = await ask(host, model, undefined);
  const larger = await ask(host, model, 16_384);
  t.is(larger[0], '2 × 16384');
  t.not(larger[1], first[1]);
  for (const contextTokens of [undefined, 4096, 16_384]) t.deepEqual(await ask(host, model, contextTokens), larger);
});

test('R106: the first request decides how much is loaded, within what all slots share', async t => {
  const {host, model} = await roomyHost(t);
  const first = await ask(host, model, 1_000_000);
  t.is(first[0], '1 × 32768');
  t.deepEqual(await ask(host, model, 2_000_000), first);
});

test('R106: an engine that is in use is not started anew, and the request runs with what is loaded', async t => {
  const {host, model} = await roomyHost(t);
  const [size, pid] = await ask(host, model, undefined);
  const other = take(host, model);
  const stream = await chat(other, {tokens: 20});
  t.deepEqual(await ask(host, model, 16_384), [size, pid]);
  t.regex(await spoken(stream), / 19 20$/u);
  await other[Symbol.asyncDispose]();
  t.is((await ask(host, model, 16_384))[0], '2 × 16384', 'when it is idle, it may be');
});

test("R106: the owner's bound is not exceeded, however often somebody asks", async t => {
  const {host, model} = await roomyHost(t, {slots: 1, contextMax: 2048});
  const first = await ask(host, model, 32_768);
  t.is(first[0], '1 × 2048');
  t.deepEqual(await ask(host, model, 65_536), first);
});

test('R106: what a request wanted is forgotten when its engine has ended and somebody loads the model', async t => {
  const {host, model} = await roomyHost(t);
  t.is((await ask(host, model, 1_000_000))[0], '1 × 32768');
  await host.stop(model.key);
  t.is(host.load(model, {context: undefined, slots: undefined, keep: false}), undefined);
  const loaded = await until('loaded', () =>
    snapshotOf(host, model)?.state === 'ready' ? snapshotOf(host, model) : undefined,
  );
  t.deepEqual([loaded.slots, loaded.context], [4, 8192]);
});
