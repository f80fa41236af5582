import {chmod, mkdir, mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {delimiter, join} from 'node:path';
import {Fault} from '@hearsay/core';
import test, {type ExecutionContext} from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {commitEngine, makePartialFolder} from './engine-store.ts';
import {engineVersion, findEngine, parseEngineVersion} from './find-engine.ts';

const deps = realEnvironment();

async function temporaryFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-engine-'));
  t.teardown(() => rm(folder, {recursive: true, force: true}));
  return folder;
}

/** A program that, asked for its version in the right words, says it on stderr as llama-server does. */
async function program(folder: string, name: string, words = '--version'): Promise<string> {
  await mkdir(folder, {recursive: true});
  const file = join(folder, name);
  const answer = 'echo "0.00 I srv  llama_server: initializing ..." >&2; echo "version: 7 (build 1, commit abc)" >&2';
  await writeFile(file, `#!/bin/sh\nif [ "$*" = "${words}" ]; then ${answer}; else exit 1; fi\n`, {mode: 0o755});
  return file;
}

async function install(cacheFolder: string, name: string, installedAtMs: number): Promise<string> {
  const partial = await makePartialFolder(cacheFolder, name);
  await program(partial, 'llama-server');
  const facts = {version: name, executable: 'llama-server', leadingArguments: [], origin: {}, installedAtMs};
  await commitEngine(cacheFolder, name, partial, facts);
  return join(cacheFolder, 'engines', name, 'llama-server');
}

test('the configured engine wins over PATH, PATH over an installed one, and nothing is undefined', async t => {
  const folder = await temporaryFolder(t);
  const configured = await program(join(folder, 'mine'), 'my-server');
  const onPath = await program(join(folder, 'bin'), 'llama-server');
  const installed = await install(folder, 'a', 1);
  const search = {configuredCommand: configured, searchPath: join(folder, 'bin'), cacheFolder: folder};

  t.deepEqual(await findEngine(search, deps), {command: configured, leadingArguments: [], source: 'config'});
  const unset = {...search, configuredCommand: undefined};
  t.deepEqual(await findEngine(unset, deps), {command: onPath, leadingArguments: [], source: 'path'});
  const found = await findEngine({...unset, searchPath: join(folder, 'empty')}, deps);
  t.deepEqual(found, {command: installed, leadingArguments: [], source: 'installed', version: 'a'});
  t.is(await findEngine({searchPath: '', cacheFolder: join(folder, 'empty')}, deps), undefined);
});

test('the multi-call llama is started with serve, from PATH and from the configuration', async t => {
  const folder = await temporaryFolder(t);
  const llama = await program(folder, 'llama', 'serve --version');
  const search = {searchPath: ['', '/nowhere', folder].join(delimiter), cacheFolder: folder};
  const expected = {command: llama, leadingArguments: ['serve']};
  t.deepEqual(await findEngine(search, deps), {...expected, source: 'path', version: '7 (build 1, commit abc)'});
  t.deepEqual(await findEngine({...search, configuredCommand: llama}, deps), {...expected, source: 'config'});
  t.deepEqual(await findEngine({...search, configuredCommand: 'llama'}, deps), {...expected, source: 'config'});
});

test('another program called llama does not hide the installed engine', async t => {
  const folder = await temporaryFolder(t);
  await program(join(folder, 'bin'), 'llama', 'spit');
  const installed = await install(folder, 'a', 1);
  const found = await findEngine({searchPath: join(folder, 'bin'), cacheFolder: folder}, deps);
  t.is(found?.command, installed);
});

test('a configured engine that cannot be run is a fault that says what to do, never another engine', async t => {
  const folder = await temporaryFolder(t);
  const text = await program(folder, 'llama-server');
  await chmod(text, 0o644);
  for (const configuredCommand of [text, join(folder, 'missing'), folder, 'no-such-program']) {
    await install(folder, 'a', 1);
    const search = {configuredCommand, searchPath: folder, cacheFolder: folder};
    const fault = await t.throwsAsync(findEngine(search, deps), {instanceOf: Fault}, configuredCommand);
    t.is(fault?.code, 'BAD_CONFIG');
    t.regex(fault?.message ?? '', /correct the path, or remove the setting/);
  }
});

test('of the installed engines the newest whole one is used', async t => {
  const folder = await temporaryFolder(t);
  const old = await install(folder, 'old', 1);
  const newest = await install(folder, 'new', 2);
  const search = {searchPath: '', cacheFolder: folder};
  t.is((await findEngine(search, deps))?.command, newest);

  await writeFile(newest, 'cut');
  t.is((await findEngine(search, deps))?.command, old, 'a file of another size');
  await rm(old);
  t.is(await findEngine(search, deps), undefined, 'a missing file');
});

test('a folder without a manifest, or with one for another platform, is no engine', async t => {
  const folder = await temporaryFolder(t);
  const search = {searchPath: '', cacheFolder: folder};
  const engine = join(folder, 'engines', 'half');
  await program(engine, 'llama-server');
  t.is(await findEngine(search, deps), undefined);

  const facts = {schema: 1, version: '1', executable: 'llama-server', leadingArguments: [], installedAtMs: 1};
  for (const text of [
    '{"schema":1,',
    'null',
    JSON.stringify({...facts, platform: 'plan9-mips', fileSizes: {'llama-server': 1}}),
  ]) {
    await writeFile(join(engine, 'manifest.json'), text);
    t.is(await findEngine(search, deps), undefined, text);
  }
});

test('the version is read between log lines, and a program without one is a fault', async t => {
  const folder = await temporaryFolder(t);
  t.is(
    parseEngineVersion('I srv\nversion: 0.5.0-dev (build 1, commit 0ad4a86)\nbuilt with GNU'),
    '0.5.0-dev (build 1, commit 0ad4a86)',
  );
  t.is(parseEngineVersion('version: 4567 (de3ff81)\r\n'), '4567 (de3ff81)');
  t.is(parseEngineVersion('usage: llama'), undefined);

  const good = {command: await program(folder, 'good'), leadingArguments: []};
  t.is(await engineVersion(good, deps), '7 (build 1, commit abc)');
  for (const command of [await program(folder, 'bad', 'help'), '/bin/true', join(folder, 'missing')]) {
    const fault = await t.throwsAsync(engineVersion({command, leadingArguments: []}, deps), {instanceOf: Fault});
    t.is(fault?.code, 'ENGINE_FAILED', command);
  }
});
