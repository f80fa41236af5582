import {spawn} from 'node:child_process';
import type {ChildProcess} from 'node:child_process';
import {once} from 'node:events';
import {readFileSync} from 'node:fs';
import {mkdir, readdir, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {createInterface} from 'node:readline';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {exists, hostConfig, temporaryFolder, testEngine, tinyModelPath} from '../../../test/support/engine-trial.ts';
import {trialHost} from '../../../test/support/engine-trial.ts';
import {until} from '../../../test/support/until.ts';
import {reapOrphans, writePidFile} from './pid-files.ts';
import {processIdentity} from './process-identity.ts';
import {startEngineHost} from './start-engine-host.ts';

const owner = join(import.meta.dirname, '../../../test/fixtures/engine-owner.ts');

/** A process that has nothing to do with engines; ended with the test. */
function bystander(t: ExecutionContext): number {
  const child = spawn('sleep', ['600'], {detached: true, stdio: 'ignore'});
  t.teardown(() => child.kill('SIGKILL'));
  return child.pid ?? 0;
}

/** Another process with an engine that streams; resolves with the engine's process id. */
async function ownerOf(
  t: ExecutionContext,
  runFolder: string,
): Promise<{readonly owner: ChildProcess; readonly pid: number}> {
  testEngine();
  const file = await tinyModelPath('tiny-deep-F16');
  const child = spawn(process.execPath, [owner, runFolder, file], {stdio: ['ignore', 'pipe', 'inherit']});
  t.teardown(() => child.kill('SIGKILL'));
  const [line] = await once(createInterface({input: child.stdout}), 'line');
  const pid = Number(line);
  const identity = await processIdentity(pid);
  t.teardown(async () => {
    // Only when the test has failed: what it starts must not outlive it.
    if (identity !== undefined && (await processIdentity(pid)) === identity) process.kill(pid, 'SIGKILL');
  });
  return {owner: child, pid};
}

test('S102: when its owner is killed, an engine is gone within 2 s even with a stream open', async t => {
  const {owner: child, pid} = await ownerOf(t, join(await temporaryFolder(t), 'run'));
  t.true(exists(pid));
  child.kill('SIGKILL');
  await until('the end of the engine', async () => (await processIdentity(pid)) === undefined, 2_000);
  t.pass();
});

test('R81: an engine that outlived its killed owner is ended by the next start, and that is logged', async t => {
  const runFolder = join(await temporaryFolder(t), 'run');
  const {owner: child, pid} = await ownerOf(t, runFolder);
  process.kill(pid, 'SIGSTOP'); // so that it cannot notice
  child.kill('SIGKILL');
  await once(child, 'exit');
  t.not(await processIdentity(pid), undefined);

  const logged: unknown[] = [];
  const environment = {...realEnvironment(), log: (...entry: readonly unknown[]): void => void logged.push(entry)};
  await using host = await startEngineHost(hostConfig(runFolder), environment);
  t.is(await processIdentity(pid), undefined);
  t.deepEqual(logged, [['warn', 'ended an engine that an earlier run had left behind', {pid}]]);
  t.deepEqual(await readdir(runFolder), []);
  t.deepEqual(host.engines(), []);
});

test('R81: a process that only has the same id as a noted engine is left alone', async t => {
  const runFolder = await temporaryFolder(t);
  const pid = bystander(t);
  const identity = (await processIdentity(pid)) ?? '';
  for (const noted of [`1${identity}`, `${identity} -m model.gguf`, identity.replace('sleep', 'llama-server'), '']) {
    await writeFile(join(runFolder, `engine-${pid}.pid`), noted);
    await reapOrphans(runFolder, realEnvironment());
    t.true(exists(pid), noted);
    t.deepEqual(await readdir(runFolder), []);
  }
});

test('R81: a noted process is found by its start time and command line', async t => {
  const runFolder = await temporaryFolder(t);
  const pid = bystander(t);
  await writePidFile(runFolder, pid);
  await reapOrphans(runFolder, realEnvironment());
  t.is(await processIdentity(pid), undefined);
});

test('R81: a note is whole at every moment, also while the same process is noted again with other words', async t => {
  const runFolder = await temporaryFolder(t);
  const pid = bystander(t);
  const file = join(runFolder, `engine-${pid}.pid`);
  await writePidFile(runFolder, pid);
  const whole = readFileSync(file, 'utf8');
  const seen = new Set<string>();
  for (let round = 0; round < 100; round += 1) {
    await writeFile(file, 'before');
    const written = writePidFile(runFolder, pid).then(() => 'written');
    do seen.add(readFileSync(file, 'utf8'));
    while ((await Promise.race([written, new Promise(setImmediate)])) !== 'written');
    seen.add(readFileSync(file, 'utf8'));
  }
  t.deepEqual([...seen].toSorted(), [whole, 'before'].toSorted());
});

test('R81: what a daemon has left that was killed while it noted an engine goes with the next start', async t => {
  const runFolder = await temporaryFolder(t);
  await writeFile(join(runFolder, 'engine-7.pid.new'), '1 llama-ser');
  await reapOrphans(runFolder, realEnvironment());
  t.deepEqual(await readdir(runFolder), []);
});

test('files in the run folder that are not ours stay there', async t => {
  const runFolder = await temporaryFolder(t);
  await mkdir(join(runFolder, 'engine-1'));
  await writeFile(join(runFolder, 'engine-x.pid'), '');
  await trialHost(t, {runFolder});
  t.deepEqual((await readdir(runFolder)).toSorted(), ['engine-1', 'engine-x.pid']);
});
