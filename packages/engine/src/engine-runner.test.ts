import {chmod, readFile, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import type {Fault} from '@hearsay/core';
import {chat, countToThree, exists, snapshotOf, spoken, take} from '../../../test/support/engine-trial.ts';
import {temporaryFolder, testEngine, tinyModel, trialHost, until} from '../../../test/support/engine-trial.ts';
import type {EngineHostConfig} from './start-engine-host.ts';

/** An engine that is a shell script without devices: it counts its starts, then runs the given line. */
async function scriptedEngine(
  t: ExecutionContext,
  line: string,
): Promise<{engine: EngineHostConfig['engine']; starts: () => Promise<number>}> {
  const folder = await temporaryFolder(t);
  const command = join(folder, 'engine');
  const starts = join(folder, 'starts');
  await writeFile(starts, '');
  await writeFile(command, `#!/bin/sh\n[ "$1" = --list-devices ] && exit\necho start >> '${starts}'\n${line}\n`);
  await chmod(command, 0o700);
  return {
    engine: {command, leadingArguments: [], description: 'script'},
    starts: async () => (await readFile(starts, 'utf8')).split('\n').length - 1,
  };
}

test('S102: when llama-server is killed in mid-stream the request fails and says why, and the next one starts it again', async t => {
  const host = await trialHost(t);
  const model = await tinyModel('tiny-deep-F16');
  const reservation = take(host, model);
  const response = await chat(reservation, {endless: true});
  const pid = snapshotOf(host, model)?.processId ?? 0;
  const reading = (async () => {
    for await (const chunk of response.body) if (chunk.length > 0 && exists(pid)) process.kill(pid, 'SIGKILL');
  })();
  const fault = await t.throwsAsync<Fault>(reading, {name: 'Fault', message: /killed \(SIGKILL\)/u});
  t.is(fault?.code, 'ENGINE_FAILED');
  t.like(snapshotOf(host, model), {state: 'backing off', processId: undefined});
  await reservation[Symbol.asyncDispose]();
  t.is(await countToThree(host, model), ' 1 2 3');
  t.not(snapshotOf(host, model)?.processId, pid);
});

test('R88: an engine that was killed while nobody needs it is not started again', async t => {
  const {engine, starts} = await scriptedEngine(t, `exec '${testEngine()}' "$@"`);
  const host = await trialHost(t, {engine, policy: {backoffMs: () => 20}});
  const model = await tinyModel('tiny-count-F16');
  await countToThree(host, model);
  process.kill(snapshotOf(host, model)?.processId ?? 0, 'SIGKILL');
  await until('the end of the back-off', () => snapshotOf(host, model) === undefined);
  t.is(await starts(), 1);
  t.is(await countToThree(host, model), ' 1 2 3');
  t.is(await starts(), 2);
});

test('R87: a llama-server that exits at once is tried three times, then refused until the cool-down is over', async t => {
  const {engine, starts} = await scriptedEngine(t, 'for n in 1 2 3; do echo "line $n" >&2; done; exit 1');
  const host = await trialHost(t, {engine, policy: {backoffMs: () => 10, coolDownMs: 5_000}});
  const model = await tinyModel('tiny-count-F16');
  await t.throwsAsync(countToThree(host, model), {message: /exited with code 1/u});
  t.is(await starts(), 3);
  t.like(host.reserve(model, {force: true}), {kind: 'refused', code: 'broken'});
  t.regex(snapshotOf(host, model)?.failure ?? '', /line 1\nline 2\nline 3$/u);
  t.is(await starts(), 3);

  await until('the cool-down', () => snapshotOf(host, model) === undefined);
  await t.throwsAsync(countToThree(host, model), {message: /exited with code 1/u});
  t.is(await starts(), 6);
});

test('R87: a broken engine tells when it may be tried again, in its refusal and below ps', async t => {
  const {engine} = await scriptedEngine(t, 'echo "line 1" >&2; exit 1');
  const host = await trialHost(t, {engine, policy: {backoffMs: () => 10, coolDownMs: 90_000, maxAttempts: 1}});
  const model = await tinyModel('tiny-count-F16');
  await t.throwsAsync(countToThree(host, model), {message: /exited with code 1/u});
  const refusal = host.reserve(model, {force: true});
  const told = /exited with code 1; it can be tried again in (?:8\d|90) s, or at once with: hearsay load/u;
  t.regex(refusal.kind === 'refused' ? refusal.message : refusal.kind, told);
  const [reason, ...lines] = (snapshotOf(host, model)?.failure ?? '').split('\n');
  t.regex(reason ?? '', told);
  t.deepEqual(lines, ['line 1']);
});

test('a broken engine is tried at once when somebody loads it by hand, has stopped it, or its file has changed', async t => {
  const {engine, starts} = await scriptedEngine(t, 'exit 1');
  const host = await trialHost(t, {engine, policy: {maxAttempts: 1}});
  const model = await tinyModel('tiny-count-F16');
  const broken = async (count: number): Promise<void> => {
    await until('it is broken', () => snapshotOf(host, model)?.state === 'broken');
    t.is(await starts(), count);
  };
  await t.throwsAsync(countToThree(host, model));
  await broken(1);
  t.is(host.load(model, {context: undefined, slots: undefined, keep: false}), undefined);
  await broken(2);

  await host.stop(model.key);
  t.is(snapshotOf(host, model), undefined, 'and it is gone from ps');
  await t.throwsAsync(countToThree(host, model));
  await broken(3);

  await t.throwsAsync(countToThree(host, {...model, modifiedWallMs: 1}));
  await broken(4);
});

test('an engine that never answers is stopped, and the requests that wait for it fail', async t => {
  const {engine} = await scriptedEngine(t, 'trap "" TERM; while :; do sleep 0.05; done');
  const policy = {startTimeoutMs: 150, killAfterMs: 100, backoffMs: () => 10, coolDownMs: 60_000};
  const host = await trialHost(t, {engine, policy});
  const model = await tinyModel('tiny-count-F16');
  // Not by what the script notes: it may have been stopped before it came to that.
  const processes = new Set<number>();
  using _watch = host.onChange(() => {
    const pid = snapshotOf(host, model)?.processId;
    if (pid !== undefined) processes.add(pid);
  });
  await t.throwsAsync(countToThree(host, model), {message: /healthy in time/u});
  t.is(processes.size, 3);
  t.deepEqual([...processes].filter(exists), []);
});

test('a program that cannot be started is named, at the first attempt', async t => {
  const engine = {command: '/nowhere/llama-server', leadingArguments: [], description: ''};
  const host = await trialHost(t, {engine});
  const model = await tinyModel('tiny-count-F16');
  await t.throwsAsync(countToThree(host, model), {message: /cannot start llama-server: .*ENOENT/u});
  t.is(snapshotOf(host, model)?.state, 'broken');
});

test('R90: an idle engine is unloaded after the keep-alive, which every request starts anew', async t => {
  const keepAliveMs = 5_000; // so that it is not over when this process has been stopped for a while
  const host = await trialHost(t, {keepAliveMs});
  const model = await tinyModel('tiny-count-F16');
  await countToThree(host, model);
  const pid = snapshotOf(host, model)?.processId ?? 0;
  const leftMs = (): number => snapshotOf(host, model)?.unloadInMs ?? 0;
  const first = leftMs();
  t.true(first > 0 && first <= keepAliveMs, `${first}`);
  const someMs = keepAliveMs - 200;
  await until('some of the keep-alive', () => leftMs() < someMs);
  host.load(model, {context: undefined, slots: undefined, keep: false});
  t.true(leftMs() > someMs, 'as every load by hand does');
  await until('some of it again', () => leftMs() < someMs);
  const reservation = take(host, model);
  t.is(snapshotOf(host, model)?.unloadInMs, undefined, 'busy');
  await spoken(await chat(reservation));
  await reservation[Symbol.asyncDispose]();
  t.true(leftMs() > someMs);
  await until('the unload', () => !exists(pid));
  await until('the end', () => snapshotOf(host, model) === undefined);
});

test('R93: a request that comes while its engine is being stopped is not lost', async t => {
  const {engine, starts} = await scriptedEngine(t, `exec '${testEngine()}' "$@"`);
  const host = await trialHost(t, {engine});
  const model = await tinyModel('tiny-count-F16');
  await countToThree(host, model);
  const stopped = host.stop(model.key);
  t.is(snapshotOf(host, model)?.state, 'stopping');
  t.is(await countToThree(host, model), ' 1 2 3');
  await stopped;
  t.is(await starts(), 2);
});

test('a stop is over long before the engine would be killed, whether it is idle or streams', async t => {
  const host = await trialHost(t, {policy: {killAfterMs: 60_000, drainTimeoutMs: 10}});
  const model = await tinyModel('tiny-deep-F16');
  await countToThree(host, model);
  const idleMs = performance.now();
  await host.stop(model.key);
  t.true(performance.now() - idleMs < 10_000, 'idle');

  const running = take(host, model);
  const reading = Array.fromAsync((await chat(running, {endless: true})).body);
  const busyMs = performance.now();
  const stopped = host.stop(model.key);
  await t.throwsAsync(reading, {name: 'Fault', message: /was stopped/u});
  await stopped;
  t.true(performance.now() - busyMs < 10_000, 'busy');
});

test('stop lets a running request end, takes new ones only into the line, and then starts anew for them', async t => {
  const host = await trialHost(t, {slots: 1, policy: {drainTimeoutMs: 600_000}});
  const model = await tinyModel('tiny-deep-F16');
  const running = take(host, model);
  const response = await chat(running, {tokens: 40});
  const pid = snapshotOf(host, model)?.processId ?? 0;
  const stopped = host.stop(model.key);
  t.is(snapshotOf(host, model)?.state, 'draining');
  t.like(host.reserve(model, {force: false}), {kind: 'busy', reason: 'draining'});
  const later = take(host, model, true);
  const answer = chat(later, {tokens: 3});
  t.regex(await spoken(response), /^ 1 2 3 .* 39 40$/u);
  await running[Symbol.asyncDispose]();
  await stopped;
  t.false(exists(pid));
  t.is(await spoken(await answer), ' 1 2 3');
  await later[Symbol.asyncDispose]();
});

test('stop ends a request that runs beyond the drain limit, and those that only wait', async t => {
  const host = await trialHost(t, {slots: 1, policy: {drainTimeoutMs: 100}});
  const model = await tinyModel('tiny-deep-F16');
  const running = take(host, model);
  const reading = Array.fromAsync((await chat(running, {endless: true})).body);
  const waiting = chat(take(host, model, true));
  const stopped = host.stop(model.key);
  await t.throwsAsync(waiting, {name: 'Fault', message: /was stopped/u});
  await t.throwsAsync(reading, {name: 'Fault', message: /was stopped/u});
  await stopped;
  t.true(['stopped', undefined].includes(snapshotOf(host, model)?.state));
});

test('a file that has changed is loaded anew', async t => {
  const host = await trialHost(t);
  const model = await tinyModel('tiny-count-F16');
  await countToThree(host, model);
  const pid = snapshotOf(host, model)?.processId;
  const changed = {...model, modifiedWallMs: 1};
  t.is(await countToThree(host, changed), ' 1 2 3');
  t.not(snapshotOf(host, changed)?.processId, pid);
  t.is(await countToThree(host, changed), ' 1 2 3');
});
