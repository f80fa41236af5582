import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {mkdtemp, rm, stat, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault} from '@hearsay/core';
import {lockDataFolder} from './lock-data-folder.ts';
import {readRunningDaemon} from './running-daemon.ts';

async function newFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-lock-'));
  t.teardown(async () => rm(folder, {recursive: true}));
  return join(folder, 'data');
}

test('a second start on one data folder is told who has it', async t => {
  const folder = await newFolder(t);
  await using lock = await lockDataFolder(folder);
  await lock.publish('http://127.0.0.1:4327');
  const fault = await t.throwsAsync(lockDataFolder(folder), {instanceOf: Fault});
  t.is(fault?.code, 'ALREADY_RUNNING');
  t.true(fault?.message.includes(`already running (pid ${process.pid}, http://127.0.0.1:4327)`), fault?.message);
});

test('of many starts at once exactly one gets the folder', async t => {
  const folder = await newFolder(t);
  const starts = await Promise.allSettled(Array.from({length: 8}, () => lockDataFolder(folder)));
  const locks = starts.filter(start => start.status === 'fulfilled').map(start => start.value);
  t.is(locks.length, 1);
  await locks[0]?.[Symbol.asyncDispose]();
});

test('after a clean end the folder is free and no daemon is named', async t => {
  const folder = await newFolder(t);
  await (await lockDataFolder(folder))[Symbol.asyncDispose]();
  t.is(await readRunningDaemon(folder), undefined);
  const again = await lockDataFolder(folder);
  await t.notThrowsAsync(async () => again[Symbol.asyncDispose]());
});

test('the folder of a killed daemon is free at once, although its file still stands there', async t => {
  const folder = await newFolder(t);
  const source = `
    const {lockDataFolder} = await import(${JSON.stringify(join(import.meta.dirname, 'lock-data-folder.ts'))});
    const lock = await lockDataFolder(${JSON.stringify(folder)});
    await lock.publish('http://127.0.0.1:1');
    console.log('locked');
    setInterval(() => lock, 1000);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', source], {stdio: ['ignore', 'pipe', 'inherit']});
  await once(owner.stdout, 'data');
  const fault = await t.throwsAsync(lockDataFolder(folder), {instanceOf: Fault});
  t.true(fault?.message.includes(`pid ${owner.pid}, http://127.0.0.1:1`), fault?.message);

  owner.kill('SIGKILL');
  await once(owner, 'exit');
  t.true((await stat(join(folder, 'daemon.json'))).isFile());
  t.is(await readRunningDaemon(folder), undefined, 'a dead process is no daemon');
  const mine = await lockDataFolder(folder);
  t.is((await readRunningDaemon(folder))?.pid, process.pid);
  await mine[Symbol.asyncDispose]();
});

test('a data folder that cannot be one is a matter of the configuration', async t => {
  const folder = await newFolder(t);
  await writeFile(folder, 'a file');
  const fault = await t.throwsAsync(lockDataFolder(folder), {instanceOf: Fault});
  t.is(fault?.code, 'BAD_CONFIG');
  t.true(fault?.message.includes(folder) && fault.message.includes('--data-dir'));
  t.regex(fault?.message ?? '', /EEXIST|ENOTDIR/u, 'the reason is there too');
});

test('a damaged daemon.json names nobody and does not hinder a start', async t => {
  const folder = await newFolder(t);
  await (await lockDataFolder(folder))[Symbol.asyncDispose]();
  await writeFile(join(folder, 'daemon.json'), '{"pid": "all"');
  t.is(await readRunningDaemon(folder), undefined);
  const lock = await lockDataFolder(folder);
  t.is((await readRunningDaemon(folder))?.pid, process.pid);
  await lock[Symbol.asyncDispose]();
});
