import {chmod, mkdir, readdir, readFile, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import type {Fault} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {chat, countToThree, exists, hostConfig, snapshotOf} from '../../../test/support/engine-trial.ts';
import {spoken, take, temporaryFolder, tinyModel, trialHost, until} from '../../../test/support/engine-trial.ts';
import {startEngineHost} from './start-engine-host.ts';

/** Limits say what a machine needs that does nothing else; where tests and neighbours share it, all takes longer. */
const patience = 5;

test('S102: a reservation starts the engine, and its requests run on it', async t => {
  const host = await trialHost(t);
  const model = await tinyModel('tiny-count-F16');
  t.is(await countToThree(host, model), ' 1 2 3');
  const engine = snapshotOf(host, model);
  t.like(engine, {state: 'ready', slots: 2, busy: 0, queued: 0, context: 2048, failure: undefined});
  const pid = engine?.processId;
  t.is(await countToThree(host, model), ' 1 2 3');
  t.is(snapshotOf(host, model)?.processId, pid, 'the same process');
});

test('a host guesses the speed of its machine, the same at every time', async t => {
  const host = await trialHost(t);
  const first = host.hardware();
  t.true(first !== undefined && first.memoryBytesPerSecond >= 1e9 && first.operationsPerSecond >= 1e9);
  t.deepEqual(host.hardware(), first);
});

test('R91: twenty simultaneous reservations start exactly one process', async t => {
  const runFolder = join(await temporaryFolder(t), 'run');
  const host = await trialHost(t, {runFolder, slots: 20, contextMax: 256});
  const model = await tinyModel('tiny-count-F16');
  const pids = new Set<number>();
  using _watch = host.onChange(() => {
    const pid = snapshotOf(host, model)?.processId;
    if (pid !== undefined) pids.add(pid);
  });
  const texts = await Promise.all(Array.from({length: 20}, async () => countToThree(host, model)));
  t.deepEqual(new Set(texts), new Set([' 1 2 3']));
  t.is(pids.size, 1);
  const noted = await until('the note of the process', async () => {
    const files = await readdir(runFolder);
    return files.some(file => file.endsWith('.pid')) && files;
  });
  t.deepEqual(noted, [`engine-${[...pids].join()}.pid`]);
});

test('R97: an engine is shown as starting while it loads, and as many requests as slots are taken then', async t => {
  const host = await trialHost(t, {slots: 2});
  const model = await tinyModel('tiny-deep-F16');
  await using _first = take(host, model);
  t.like(snapshotOf(host, model), {state: 'starting', busy: 1});
  await using _second = take(host, model);
  const third = host.reserve(model, {force: false});
  t.like(third, {kind: 'busy', reason: 'loading'});
  t.true(third.kind === 'busy' && third.retryAfterMs >= 100);
});

test('when all slots are taken, a request is told busy, and a forced one waits for its turn', async t => {
  const host = await trialHost(t, {slots: 1});
  const model = await tinyModel('tiny-count-F16');
  const first = take(host, model);
  await spoken(await chat(first));
  t.like(host.reserve(model, {force: false}), {kind: 'busy', reason: 'slots'});

  const order: string[] = [];
  const line = ['b', 'c', 'd'].map(async name => {
    await using waiting = take(host, model, true);
    const text = await spoken(await chat(waiting, {tokens: 2}));
    order.push(name + text);
  });
  t.like(snapshotOf(host, model), {busy: 1, queued: 3});
  await first[Symbol.asyncDispose]();
  await Promise.all(line);
  t.deepEqual(order, ['b 1 2', 'c 1 2', 'd 1 2']);
  t.like(snapshotOf(host, model), {busy: 0, queued: 0});
});

test('the line for an engine is bounded', async t => {
  const host = await trialHost(t, {slots: 1});
  const model = await tinyModel('tiny-count-F16');
  const answers = Array.from({length: 300}, () => host.reserve(model, {force: true}));
  const taken = answers.filter(({kind}) => kind === 'accepted');
  t.is(taken.length, 1 + 256);
  t.is(answers.at(-1)?.kind, 'busy');
});

test('R4: an aborted stream ends at once and its slot serves the next request', async t => {
  const host = await trialHost(t, {slots: 1});
  const model = await tinyModel('tiny-deep-F16');
  const abort = new AbortController();
  const reservation = take(host, model);
  const response = await chat(reservation, {endless: true, signal: abort.signal});
  let chunks = 0;
  const reading = (async () => {
    for await (const _chunk of response.body) chunks += 1;
  })();
  await until('the first chunk', () => chunks > 0);
  const abortedMs = performance.now();
  abort.abort(new Error('the client went away'));
  await t.throwsAsync(reading, {message: 'the client went away'});
  await reservation[Symbol.asyncDispose]();
  t.true(performance.now() - abortedMs < 5_000);
  // Until llama-server itself has said so, the slot counts as busy.
  await until('the proof that it is free', () => snapshotOf(host, model)?.busy === 0);
  t.is(await countToThree(host, model), ' 1 2 3');
  // Left alone, the stream would have run for ten seconds more and the next request would have waited for it.
  t.true(performance.now() - abortedMs < 9_000);
});

test('disposing a reservation twice gives back one slot, and disposing it while it runs ends the run', async t => {
  const host = await trialHost(t, {slots: 2});
  const model = await tinyModel('tiny-deep-F16');
  await using _other = take(host, model);
  const reservation = take(host, model);
  const response = await chat(reservation, {endless: true});
  await Promise.all([reservation[Symbol.asyncDispose](), reservation[Symbol.asyncDispose]()]);
  await until('the proof that it is free', () => snapshotOf(host, model)?.busy === 1);
  await t.throwsAsync(Array.fromAsync(response.body), {name: 'Fault', message: /given back/u});
});

test('R7: twenty streams that are dropped after one chunk leave all slots free', async t => {
  const host = await trialHost(t, {slots: 4, contextMax: 512});
  const model = await tinyModel('tiny-deep-F16');
  const drops = Array.from({length: 20}, async () => {
    await using reservation = take(host, model, true);
    const response = await chat(reservation, {endless: true});
    for await (const chunk of response.body) if (chunk.length > 0) break;
  });
  await Promise.all(drops);
  await until('the proof that they are free', () => snapshotOf(host, model)?.busy === 0);
  t.like(snapshotOf(host, model), {state: 'ready', busy: 0, queued: 0});
  t.is(await countToThree(host, model), ' 1 2 3');
});

test('a request that is aborted while its engine loads ends at once and keeps no slot', async t => {
  const host = await trialHost(t, {slots: 1});
  const model = await tinyModel('tiny-deep-F16');
  const abort = new AbortController();
  const reservation = take(host, model);
  const answer = chat(reservation, {signal: abort.signal});
  abort.abort(new Error('the client went away'));
  await t.throwsAsync(answer, {message: 'the client went away'});
  await reservation[Symbol.asyncDispose]();
  t.like(snapshotOf(host, model), {state: 'starting', busy: 0});
});

test('R24: an error status of llama-server is an answer, not a fault', async t => {
  const host = await trialHost(t);
  await using reservation = take(host, await tinyModel('tiny-count-F16'));
  const body = Buffer.from(JSON.stringify({messages: 'not a list'}));
  const response = await reservation.run({endpoint: '/v1/chat/completions', body}, new AbortController().signal);
  t.true(response.status >= 400);
  t.regex(response.contentType, /json/u);
  t.regex(Buffer.concat(await Array.fromAsync(response.body)).toString(), /"error"/u);
});

test('every change of load is announced and moves the load number', async t => {
  const host = await trialHost(t);
  const model = await tinyModel('tiny-count-F16');
  const states: string[] = [];
  let seq = host.loadSeq();
  {
    using _watch = host.onChange(() => {
      t.true(host.loadSeq() > seq);
      seq = host.loadSeq();
      const {state, busy} = snapshotOf(host, model) ?? {state: 'none', busy: 0};
      const text = `${state} ${busy}`;
      if (states.at(-1) !== text) states.push(text);
    });
    await countToThree(host, model);
  }
  t.deepEqual(states, ['starting 1', 'ready 1', 'ready 0']);
  await countToThree(host, model);
  t.is(states.length, 3, 'not after it was disposed');
});

test('without an engine every reservation is refused with the way to get one', async t => {
  const host = await trialHost(t, {engine: undefined});
  const answer = host.reserve(await tinyModel('tiny-count-F16'), {force: true});
  t.like(answer, {kind: 'refused', code: 'broken'});
  t.regex(answer.kind === 'refused' ? answer.message : '', /hearsay engine install/u);
  t.deepEqual(host.engines(), []);
});

test('R82: closing the host with streams open ends all engines within 5 s, leaves no zombie and nothing in the run folder', async t => {
  const runFolder = join(await temporaryFolder(t), 'run');
  // A drain would take ten minutes; a kill comes after three seconds, on a machine that does nothing else.
  const policy = {drainTimeoutMs: 600_000};
  const host = await startEngineHost(hostConfig(runFolder, {policy}), realEnvironment());
  const models = await Promise.all((['tiny-count-F16', 'tiny-other-Q4_0', 'tiny-deep-F16'] as const).map(tinyModel));
  const responses = await Promise.all(models.map(async model => chat(take(host, model), {endless: true})));
  const pids = host.engines().map(({processId}) => processId ?? 0);
  t.is(pids.filter(exists).length, 3);
  const deep = responses.at(-1);
  const reading = Array.fromAsync(deep?.body ?? []);

  const closingMs = performance.now();
  const closing = host[Symbol.asyncDispose]();
  t.like(host.reserve(models[0] ?? (await tinyModel('tiny-count-F16')), {force: true}), {
    kind: 'busy',
    reason: 'draining',
  });
  const fault = await t.throwsAsync<Fault>(reading, {name: 'Fault', message: /shutting down/u});
  t.is(fault?.code, 'ENGINE_FAILED');
  await closing;
  t.true(performance.now() - closingMs < patience * 5_000);
  t.deepEqual(pids.filter(exists), []);
  t.deepEqual(await readdir(runFolder), []);
});

test('closing the host ends even an engine that does not react', async t => {
  const host = await startEngineHost(hostConfig(join(await temporaryFolder(t), 'run')), realEnvironment());
  const model = await tinyModel('tiny-count-F16');
  await countToThree(host, model);
  const pid = snapshotOf(host, model)?.processId ?? 0;
  process.kill(pid, 'SIGSTOP');
  const closingMs = performance.now();
  await host[Symbol.asyncDispose]();
  t.true(performance.now() - closingMs < patience * 5_000);
  t.false(exists(pid));
});

test('closing the host ends a llama-server that was asked for the devices and never tells', async t => {
  const folder = await temporaryFolder(t);
  const [command, pidFile] = [join(folder, 'engine'), join(folder, 'pid')];
  await writeFile(command, `#!/bin/sh\necho $$ > '${pidFile}'\nexec sleep 300\n`);
  await chmod(command, 0o700);
  const engine = {command, leadingArguments: [], description: 'hangs'};
  const warnings: string[] = [];
  const environment = {...realEnvironment(), log: (_: unknown, message: string) => void warnings.push(message)};
  const host = await startEngineHost(hostConfig(join(folder, 'run'), {engine}), environment);
  const pid = await until(
    'it tells its process id',
    async () => Number(await readFile(pidFile, 'utf8').catch(() => '')) || undefined,
  );
  t.teardown(() => exists(pid) && process.kill(pid, 'SIGKILL'));
  t.true(exists(pid));
  await host[Symbol.asyncDispose]();
  await until('it has ended', () => !exists(pid));
  t.deepEqual(warnings, []);
});

test('R87: a damaged file is refused with the reason of llama-server, and other models are not affected', async t => {
  const folder = await temporaryFolder(t);
  const good = await tinyModel('tiny-count-F16');
  const file = join(folder, 'private', 'damaged.gguf');
  await mkdir(join(folder, 'private'));
  await writeFile(file, (await readFile(good.files[0])).subarray(0, 300_000));
  const damaged = {...good, key: file, files: [file], names: ['damaged']} as const;

  const host = await trialHost(t, {policy: {coolDownMs: 60_000}});
  t.is(await countToThree(host, good), ' 1 2 3');
  const fault = await t.throwsAsync<Fault>(countToThree(host, damaged), {message: /not within the file bounds/u});
  t.is(fault?.code, 'ENGINE_FAILED');
  const log = host.logs(damaged.key, 0).lines;
  t.is(log.filter(line => line === 'hearsay: starting').length, 1, 'it was not tried again and again');

  const again = host.reserve(damaged, {force: true});
  t.like(again, {kind: 'refused', code: 'broken'});
  t.regex(again.kind === 'refused' ? again.message : '', /damaged .*not within the file bounds/u);
  t.like(snapshotOf(host, damaged), {state: 'broken', processId: undefined});
  t.regex(snapshotOf(host, damaged)?.failure ?? '', /failed to load model/u);
  t.notRegex(`${fault?.message} ${snapshotOf(host, damaged)?.failure}`, /private/u);
  t.is(await countToThree(host, good), ' 1 2 3');
});
