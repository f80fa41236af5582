import {existsSync} from 'node:fs';
import {copyFile, readdir, rename, rm, symlink, utimes, writeFile} from 'node:fs/promises';
import {dirname, join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault} from '@hearsay/core';
import type {TextStore} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {temporaryFolder, testEngine} from '../../../test/support/engine-trial.ts';
import {engineVersion} from './find-engine.ts';
import {knownVersion} from './known-version.ts';

const {clock} = realEnvironment();

/** What is remembered, in sight of the test. */
interface Memory extends TextStore {
  text: string | undefined;
}

function memoryOf(text?: string): Memory {
  const memory: Memory = {
    text,
    read: async () => memory.text,
    write: async next => void (memory.text = next),
  };
  return memory;
}

/** A llama-server of its own, with links to the libraries of the real one. */
async function ownEngine(t: ExecutionContext, name = 'llama-server'): Promise<string> {
  const folder = await temporaryFolder(t);
  const real = dirname(testEngine());
  for (const file of await readdir(real)) await symlink(join(real, file), join(folder, file));
  await rm(join(folder, 'llama-server'));
  await copyFile(testEngine(), join(folder, name));
  return join(folder, name);
}

const engine = (command: string) => ({command, leadingArguments: []});

async function ask(command: string, memory: TextStore): Promise<string> {
  return knownVersion(engine(command), {clock, memory});
}

/** A memory in which this engine has said a version that no engine says: whoever hears that has not run it. */
async function remembered(command: string): Promise<Memory> {
  const memory = memoryOf();
  const version = await ask(command, memory);
  memory.text = memory.text?.replace(JSON.stringify(version), '"as remembered"');
  return memory;
}

test('an engine that is the same as when it was asked is not run for its version', async t => {
  const command = await ownEngine(t);
  const memory = await remembered(command);
  t.is(await ask(command, memory), 'as remembered');
  t.is(await ask(command, memoryOf()), await engineVersion(engine(command), {clock}), 'the first time it is run');
});

test('an engine is asked again when it, a library of it, or where a link leads has changed', async t => {
  const command = await ownEngine(t);
  const version = await engineVersion(engine(command), {clock});
  const memory = await remembered(command);
  await utimes(command, 1, 1);
  t.is(await ask(command, memory), version);
  t.is(memory.text?.match(/"version"/gu)?.length, 1, 'what a program said before it changed is forgotten');

  const library = join(dirname(command), 'libllama-common.so');
  const other = await remembered(command);
  await copyFile(library, `${library}.new`);
  await rename(`${library}.new`, library);
  t.is(await ask(command, other), version);

  const sameTime = await remembered(command);
  await utimes(command, 1, 1);
  t.is(await ask(command, sameTime), version, 'which bytes may have come with the same time is not known');

  const link = join(await temporaryFolder(t), 'llama-server');
  await symlink(command, link);
  t.is(await ask(link, await remembered(command)), 'as remembered');
  await rm(link);
  await symlink(await ownEngine(t), link);
  t.is(await ask(link, await remembered(command)), version);
});

test('an engine that lacks a library is found not to work, whatever it said before', async t => {
  for (const library of ['libggml-base.so', 'libllama-common.so']) {
    const command = await ownEngine(t);
    const memory = await remembered(command);
    await rm(join(dirname(command), library));
    await t.throwsAsync(ask(command, memory), {instanceOf: Fault}, library);
  }
});

const withCache = existsSync('/etc/ld.so.cache') ? test : test.skip;
if (withCache === test.skip)
  console.log('skipped: libraries of the system that change, of which only Linux keeps a list');

withCache('an engine is asked again when the system has other libraries', async t => {
  const command = await ownEngine(t);
  const memory = await remembered(command);
  memory.text = memory.text?.replace(/(?<=\/etc\/ld\.so\.cache\|)\d+/u, '1');
  t.is(await ask(command, memory), await engineVersion(engine(command), {clock}));
});

test('nothing is remembered of a script or a launcher, behind which any program may come to be', async t => {
  const version = await engineVersion(engine(testEngine()), {clock});
  const script = join(await temporaryFolder(t), 'llama-server');
  await writeFile(script, `#!/bin/sh\nexec '${testEngine()}' "$@"\n`, {mode: 0o755});
  const unmarked = join(await temporaryFolder(t), 'llama-server');
  await writeFile(unmarked, `exec '${testEngine()}' "$@"\n`, {mode: 0o755});
  const link = join(await temporaryFolder(t), 'llama-server');
  await symlink(await ownEngine(t, 'launcher'), link);
  for (const command of [script, unmarked, link]) {
    const memory = memoryOf();
    t.is(await ask(command, memory), version);
    t.is(memory.text, undefined);
  }
});

test('a program that says no version is asked each time, and each time that is a fault', async t => {
  const command = join(await temporaryFolder(t), 'llama-server');
  await copyFile('/bin/false', command);
  const memory = memoryOf();
  for (let time = 1; time <= 2; time += 1) await t.throwsAsync(ask(command, memory), {instanceOf: Fault});
  t.is(memory.text, undefined);
});

test('a memory that is damaged, of another layout or not to be written costs only the question', async t => {
  const command = await ownEngine(t);
  const version = await engineVersion(engine(command), {clock});
  for (const text of ['{', '{}', 'null', '[null, 1, {"stamp": 1, "version": "x"}]']) {
    const memory = memoryOf(text);
    t.is(await ask(command, memory), version);
    t.regex(memory.text ?? '', /"version":/u);
  }
  for (const said of ['', 'x'.repeat(1_000_000), 'a\u001b[31m', 'a\nb']) {
    const memory = await remembered(command);
    memory.text = memory.text?.replace('"as remembered"', JSON.stringify(said));
    t.is(await ask(command, memory), version);
  }
  const sealed: TextStore = {read: () => Promise.reject(new Error('no')), write: () => Promise.reject(new Error('no'))};
  t.is(await ask(command, sealed), version);
});

test('no more versions are kept than a machine has builds in use', async t => {
  const old = Array.from({length: 100}, (_, index) => ({stamp: `/old/${index}|1|1|1`, version: 'old'}));
  const memory = memoryOf(JSON.stringify(old));
  await ask(await ownEngine(t), memory);
  t.is(memory.text?.match(/"version"/gu)?.length, 16);
  t.true(memory.text?.includes('/old/99|'), 'the latest');
});
