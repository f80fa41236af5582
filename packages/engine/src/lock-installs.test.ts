import {spawn, type ChildProcessByStdio} from 'node:child_process';
import {once} from 'node:events';
import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {Readable} from 'node:stream';
import test, {type ExecutionContext} from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {lockInstalls} from './lock-installs.ts';

const deps = realEnvironment();

/** Another process that takes the lock, says so and keeps it. */
const holder = `
  import {lockInstalls} from ${JSON.stringify(new URL('lock-installs.ts', import.meta.url))};
  const clock = {monotonicMs: () => performance.now(), sleep: ms => new Promise(done => setTimeout(done, ms))};
  await lockInstalls(process.argv[1], () => {}, {clock});
  console.log('locked');
  setTimeout(() => {}, 60_000);
`;

async function holdElsewhere(t: ExecutionContext, folder: string): Promise<ChildProcessByStdio<null, Readable, null>> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', holder, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

async function temporaryFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-lock-'));
  t.teardown(() => rm(folder, {recursive: true, force: true}));
  return folder;
}

test('the lock of a killed process is free at once, and the waiting one was told for whom it waits', async t => {
  const folder = await temporaryFolder(t);
  const child = await holdElsewhere(t, folder);
  const owners: string[] = [];
  const lock = lockInstalls(folder, owner => owners.push(owner), deps);
  while (owners.length === 0) await deps.clock.sleep(10);
  child.kill('SIGKILL');
  using _ = await lock;
  t.deepEqual(owners, [`process ${child.pid}`]);
});

test('one process cannot hold the lock twice, and disposing frees it', async t => {
  const folder = await temporaryFolder(t);
  const first = await lockInstalls(folder, () => {}, deps);
  const stop = new AbortController();
  const waiting = lockInstalls(folder, () => stop.abort(new Error('no patience')), deps, stop.signal);
  await t.throwsAsync(waiting, {message: 'no patience'});
  first[Symbol.dispose]();
  const second = await lockInstalls(folder, () => t.fail('there was nobody to wait for'), deps);
  second[Symbol.dispose]();
  t.pass();
});
