import {open} from 'node:fs/promises';
import {join} from 'node:path';
import {Fault} from '@hearsay/core';
import test from 'ava';
import {temporaryFolder} from '../../../test/support/engine-trial.ts';
import {realEnvironment} from '../../../test/support/environment.ts';
import {runCommand} from './run-command.ts';

const deps = realEnvironment();

function shell(script: string, timeLimitMs = 10_000, signal?: AbortSignal): ReturnType<typeof runCommand> {
  return runCommand('/bin/sh', ['-c', script], {timeLimitMs}, deps, signal);
}

test('a failed command is a fault with what it said, a missing one is named', async t => {
  t.deepEqual(await shell('echo out; echo err >&2'), {stdout: 'out\n', stderr: 'err\n'});
  const failed = await t.throwsAsync(shell('echo the reason >&2; exit 3'), {instanceOf: Fault});
  t.is(failed?.message, '/bin/sh failed (exit code 3): the reason');
  const missing = await t.throwsAsync(runCommand('no-such-program', [], {timeLimitMs: 1000}, deps), {
    instanceOf: Fault,
  });
  t.is(missing?.details['missing'], 'no-such-program');
});

test('when time is up or the signal aborts, the grandchildren die too', async t => {
  // The output pipe closes, and so the call returns, only when the background sleep is gone.
  const late = await t.throwsAsync(shell('sleep 60 & sleep 60', 200), {instanceOf: Fault});
  t.is(late?.code, 'TIMED_OUT');
  const stop = new AbortController();
  const aborted = shell('sleep 60 & sleep 60', 10_000, stop.signal);
  stop.abort(new Error('enough'));
  await t.throwsAsync(aborted, {message: 'enough'});
});

test('a program that is still open for writing is started when it is closed', async t => {
  const program = join(await temporaryFolder(t), 'program');
  const file = await open(program, 'w', 0o755);
  await file.write('#!/bin/sh\necho started\n');
  const output = runCommand(program, [], {timeLimitMs: 10_000}, deps);
  await deps.clock.sleep(100); // a look or two
  await file.close();
  t.is((await output).stdout, 'started\n');
});
