import {chmod, readFile, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import type {Fault} from '@hearsay/core';
import {chat, countToThree, exists, snapshotOf, spoken, take} from '../../../test/support/engine-trial.ts';
import {temporaryFolder, tinyModel, trialHost, until} from '../../../test/support/engine-trial.ts';

/** What supervision promises beyond start and stop: hung engines, cancelled requests, keep-alive, loads on wish. */

/** A look each tenth of a second, so that a test need not wait for half a minute. */
const impatient = {lookEveryMs: 100, lookMsMax: 300, failuresMax: 3};

test('S102: an engine that hangs in mid-stream is killed and named, and the next request gets a new one', async t => {
  const host = await trialHost(t, {hung: impatient});
  const model = await tinyModel('tiny-deep-F16');
  const reservation = take(host, model);
  const response = await chat(reservation, {endless: true});
  const pid = snapshotOf(host, model)?.processId ?? 0;
  let isStopped = false;
  const reading = (async () => {
    for await (const chunk of response.body) {
      if (chunk.length > 0 && !isStopped) process.kill(pid, 'SIGSTOP');
      isStopped = true;
    }
  })();
  const fault = await t.throwsAsync<Fault>(reading, {name: 'Fault', message: /it hung: no answer for \d+ s/u});
  t.is(fault?.code, 'ENGINE_FAILED');
  await until('the end of the process', () => !exists(pid));
  await reservation[Symbol.asyncDispose]();
  await until('its log says why', () =>
    host.logs(model.key, 0).lines.some(line => line.startsWith('hearsay: backing off: it hung')),
  );
  t.is(await countToThree(host, model), ' 1 2 3');
});

test('an engine that somebody tells to end while it answers is no riddle for long: it has died, and its answers end', async t => {
  const host = await trialHost(t, {hung: {...impatient, failuresMax: 1000}});
  const model = await tinyModel('tiny-deep-F16');
  const reservation = take(host, model);
  const response = await chat(reservation, {endless: true});
  const pid = snapshotOf(host, model)?.processId ?? 0;
  let isTold = false;
  const reading = (async () => {
    for await (const chunk of response.body) {
      if (chunk.length > 0 && !isTold) process.kill(pid, 'SIGTERM');
      isTold = true;
    }
  })();
  // Now and then llama-server cuts the stream by itself before that is found out, and takes its time to end.
  const message = /was told to end from outside|the connection to it broke/u;
  const fault = await t.throwsAsync<Fault>(reading, {name: 'Fault', message});
  t.is(fault?.code, 'ENGINE_FAILED');
  await reservation[Symbol.asyncDispose]();
  await until('the end of the process', () => !exists(pid), 30_000);
  const answer = await until('a new one answers', async () => countToThree(host, model).catch(() => undefined));
  t.is(answer, ' 1 2 3');
});

test('S102: a request that waits for its first token on a hung engine fails too, so that another node may take it', async t => {
  const host = await trialHost(t, {hung: impatient, slots: 1});
  const model = await tinyModel('tiny-count-F16');
  await countToThree(host, model);
  process.kill(snapshotOf(host, model)?.processId ?? 0, 'SIGSTOP');
  await using reservation = take(host, model);
  await t.throwsAsync(chat(reservation), {name: 'Fault', message: /it hung/u});
});

test('an engine that only works for long is not taken for hung', async t => {
  const host = await trialHost(t, {hung: {...impatient, failuresMax: 10}, contextMax: 4096, slots: 1});
  const model = await tinyModel('tiny-deep-F16');
  await using reservation = take(host, model);
  // The prompt alone takes longer than ten looks; there is no token in that time, only /health.
  t.is(await spoken(await chat(reservation, {prompt: 'x'.repeat(1_000), tokens: 3})), ' 1 2 3');
});

for (const [signal, words] of [
  ['SIGSEGV', /crashed \(SIGSEGV\)/u],
  ['SIGKILL', /was killed \(SIGKILL\)/u],
  ['SIGBUS', /model file may have been cut/u],
] as const) {
  test(`a llama-server that dies of ${signal} is named so, in ps and in its log`, async t => {
    const host = await trialHost(t, {policy: {backoffMs: () => 60_000}});
    const model = await tinyModel('tiny-count-F16');
    await countToThree(host, model);
    process.kill(snapshotOf(host, model)?.processId ?? 0, signal);
    await until('the back-off', () => snapshotOf(host, model)?.state === 'backing off');
    t.regex(snapshotOf(host, model)?.failure ?? '', words);
    t.regex(host.logs(model.key, 0).lines.join('\n'), words);
  });
}

test('R88: an engine that is killed at every start is started three times, however often it is asked for', async t => {
  const folder = await temporaryFolder(t);
  const command = join(folder, 'engine');
  await writeFile(join(folder, 'starts'), '');
  await writeFile(
    command,
    `#!/bin/sh\n[ "$1" = --list-devices ] && exit 0\necho start >> '${join(folder, 'starts')}'\nkill -KILL $$\n`,
  );
  await chmod(command, 0o700);
  const engine = {command, leadingArguments: [], description: 'script'};
  const host = await trialHost(t, {engine, policy: {backoffMs: () => 10, coolDownMs: 600_000}});
  const model = await tinyModel('tiny-count-F16');
  await t.throwsAsync(countToThree(host, model), {message: /SIGKILL/u});
  for (let request = 0; request < 50; request += 1) t.is(host.reserve(model, {force: true}).kind, 'refused');
  t.is((await readFile(join(folder, 'starts'), 'utf8')).split('\n').length - 1, 3);
  t.true(host.logs(model.key, 0).next < 20);
});

test('R4: a request that is cancelled while its prompt is read keeps its slot until llama-server has let go of it', async t => {
  const host = await trialHost(t, {slots: 1, contextMax: 4096});
  const model = {...(await tinyModel('tiny-deep-F16')), contextMax: 8192};
  await countToThree(host, model);
  const abort = new AbortController();
  const reservation = take(host, model);
  // The head comes when the slot begins to read the prompt, which takes a second or more.
  const {body} = await chat(reservation, {prompt: 'x'.repeat(1_000), tokens: 3, signal: abort.signal});
  const reading = Array.fromAsync(body);
  abort.abort(new Error('the client went away'));
  await t.throwsAsync(reading, {message: 'the client went away'});
  await reservation[Symbol.asyncDispose]();
  t.like(snapshotOf(host, model), {state: 'ready', busy: 1});
  t.like(host.reserve(model, {force: false}), {kind: 'busy', reason: 'slots'});
  await until('the proof', () => snapshotOf(host, model)?.busy === 0, 180_000);
  t.is(await countToThree(host, model), ' 1 2 3');
});

test('an engine that does not let go of a cancelled request in time is replaced, and who waits is served', async t => {
  const host = await trialHost(t, {slots: 1, contextMax: 4096, proof: {graceMs: 1}});
  const model = {...(await tinyModel('tiny-deep-F16')), contextMax: 8192};
  await countToThree(host, model);
  const pid = snapshotOf(host, model)?.processId ?? 0;
  const abort = new AbortController();
  const reservation = take(host, model);
  // The head comes when the slot begins to read the prompt, which takes a second or more.
  const {body} = await chat(reservation, {prompt: 'x'.repeat(1_000), tokens: 3, signal: abort.signal});
  const reading = Array.fromAsync(body);
  abort.abort(new Error('the client went away'));
  await t.throwsAsync(reading, {message: 'the client went away'});
  await reservation[Symbol.asyncDispose]();
  await using next = take(host, model, true);
  t.is(await spoken(await chat(next, {tokens: 3})), ' 1 2 3');
  t.not(snapshotOf(host, model)?.processId, pid);
  t.false(exists(pid));
});

test('counters return to zero after 100 streams that are aborted before, at and after their first byte', async t => {
  const host = await trialHost(t, {slots: 4, contextMax: 512});
  const model = await tinyModel('tiny-deep-F16');
  const aborted = Array.from({length: 100}, async (_, index) => {
    const abort = new AbortController();
    await using reservation = take(host, model, true);
    if (index % 4 === 0) abort.abort(new Error('gone'));
    if (index % 4 === 1) setTimeout(() => abort.abort(new Error('gone')), index);
    const reading = (async () => {
      const response = await chat(reservation, {endless: true, signal: abort.signal});
      for await (const chunk of response.body) if (chunk.length > 0) abort.abort(new Error('gone'));
    })();
    await t.throwsAsync(reading, {message: 'gone'});
  });
  await Promise.all(aborted);
  await until('zero', () => snapshotOf(host, model)?.busy === 0);
  t.like(snapshotOf(host, model), {state: 'ready', busy: 0, queued: 0});
  t.is(await countToThree(host, model), ' 1 2 3');
});

test('R105: keep_alive 0 unloads only after the last of two requests has ended', async t => {
  const host = await trialHost(t, {keepAliveMs: 600_000});
  const model = await tinyModel('tiny-deep-F16');
  const longer = take(host, model);
  const stream = await chat(longer, {tokens: 30});
  const answer = host.reserve(model, {force: false, keepAliveMs: 0});
  if (answer.kind !== 'accepted') return t.fail(answer.kind);
  t.is(await spoken(await chat(answer, {tokens: 3})), ' 1 2 3');
  await answer[Symbol.asyncDispose]();
  const pid = snapshotOf(host, model)?.processId ?? 0;
  t.regex(await spoken(stream), / 29 30$/u);
  t.true(exists(pid));
  await longer[Symbol.asyncDispose]();
  await until('the unload', () => !exists(pid));
  await until('the end', () => snapshotOf(host, model) === undefined);
  await countToThree(host, model);
  t.true((snapshotOf(host, model)?.unloadInMs ?? 0) > 300_000, 'the next one does not ask for it');
});

test("R90, R103: a request can ask for a longer stay within the owner's limits, and one without a word does not shorten it", async t => {
  const host = await trialHost(t, {keepAliveMs: 60_000, keepAliveMsMin: 30_000, keepAliveMsMax: 3_600_000});
  const model = await tinyModel('tiny-count-F16');
  const staysMs = async (keepAliveMs: number | undefined): Promise<number> => {
    const answer = host.reserve(model, {force: false, keepAliveMs});
    if (answer.kind !== 'accepted') throw new Error(answer.kind);
    await spoken(await chat(answer, {tokens: 1}));
    await answer[Symbol.asyncDispose]();
    return Math.ceil((snapshotOf(host, model)?.unloadInMs ?? 0) / 10_000) * 10_000;
  };
  t.is(await staysMs(undefined), 60_000);
  t.is(await staysMs(600_000), 600_000);
  t.is(await staysMs(undefined), 600_000);
  t.is(await staysMs(Infinity), 3_600_000);
  t.is(await staysMs(0), 30_000);
});

test('load starts an engine that nobody has asked, and one that is to stay stays', async t => {
  const host = await trialHost(t, {keepAliveMs: 50});
  const model = await tinyModel('tiny-count-F16');
  t.is(host.load(model, {context: 256, slots: 3, keep: true}), undefined);
  await until('ready', () => snapshotOf(host, model)?.state === 'ready');
  t.like(snapshotOf(host, model), {slots: 3, context: 256, busy: 0});
  await countToThree(host, model);
  t.is(snapshotOf(host, model)?.unloadInMs, undefined);
  await host.stop(model.key);
  await countToThree(host, model);
  t.like(snapshotOf(host, model), {slots: 2, context: 2048}, 'after a stop it is as the owner has set');
});

test('while an engine loads it tells how long that will take, by its last load, also after a restart of hearsay', async t => {
  const loadTimesFile = join(await temporaryFolder(t), 'load-times.json');
  const model = await tinyModel('tiny-deep-F16');
  {
    await using host = await trialHost(t, {loadTimesFile});
    await countToThree(host, model);
  }
  const saved = /"ms":(\d+)/u.exec(await readFile(loadTimesFile, 'utf8'))?.[1];
  const host = await trialHost(t, {loadTimesFile});
  host.load(model, {context: undefined, slots: undefined, keep: false});
  const loading = snapshotOf(host, model)?.loading;
  t.true(
    (loading?.remainingMs ?? 0) > 0 && (loading?.remainingMs ?? Infinity) <= Number(saved),
    JSON.stringify(loading),
  );
  await until('ready', () => snapshotOf(host, model)?.state === 'ready');
  t.is(snapshotOf(host, model)?.loading, undefined);
});

test('what an engine waits for memory is no part of its load, and no reason to give it up', async t => {
  // Enough for a load on a machine that does much else.
  const policy = {startTimeoutMs: 8_000, drainTimeoutMs: 100, maxAttempts: 1};
  const host = await trialHost(t, {memoryBytes: 30e6, policy});
  const [first, second] = [await tinyModel('tiny-deep-F16'), await tinyModel('tiny-count-F16')];
  const reservation = take(host, first);
  await until('the first is ready', () => snapshotOf(host, first)?.state === 'ready');
  const sinceMs = performance.now();
  const waiting = take(host, second, true);
  const answer = chat(waiting, {tokens: 3});
  await until('more than the time for a start', () => performance.now() - sinceMs > 1.5 * policy.startTimeoutMs);
  t.is(snapshotOf(host, second)?.state, 'starting', snapshotOf(host, second)?.failure);
  const reading = Array.fromAsync((await chat(reservation, {endless: true})).body);
  await Promise.all([host.stop(first.key), t.throwsAsync(reading)]);
  t.is(await spoken(await answer), ' 1 2 3');
  await Promise.all([reservation[Symbol.asyncDispose](), waiting[Symbol.asyncDispose]()]);
  t.true((snapshotOf(host, second)?.loadMs ?? Infinity) < policy.startTimeoutMs);
});
