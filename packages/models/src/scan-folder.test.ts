import {chmod, mkdir, mkdtemp, rename, rm, symlink, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {dirname, join, relative} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {openDoor} from './file-door.ts';
import {scanFolder} from './scan-folder.ts';

const limits = {depthMax: 8, entriesMax: 1000, filesMax: 1000};

async function makeFolder(t: ExecutionContext, files: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-scan-'));
  t.teardown(() => rm(folder, {recursive: true, force: true}));
  for (const file of files) {
    await mkdir(dirname(join(folder, file)), {recursive: true});
    await writeFile(join(folder, file), file);
  }
  return folder;
}

async function found(folder: string, changes: Partial<typeof limits> = {}): Promise<readonly string[]> {
  const {files} = await scanFolder(folder, openDoor, new AbortController().signal, {limits: {...limits, ...changes}});
  return files.map(({path}) => relative(folder, path)).toSorted();
}

test('models are found at any depth; hidden folders and other files are not looked into', async t => {
  const folder = await makeFolder(t, ['a.gguf', 'x/y/z/b.gguf', '.hidden/c.gguf', 'x/readme.md']);
  t.deepEqual(await found(folder), ['a.gguf', 'x/y/z/b.gguf']);
});

test('a hidden folder that was named itself is searched', async t => {
  const folder = await makeFolder(t, ['.cache/a.gguf']);
  t.deepEqual(await found(join(folder, '.cache')), ['a.gguf']);
});

test('R76: a link to a file is found under its own name', async t => {
  const folder = await makeFolder(t, ['blobs/abc']);
  await symlink('blobs/abc', join(folder, 'm-00001-of-00002.gguf'));
  await symlink('nowhere', join(folder, 'm-00002-of-00002.gguf'));
  t.deepEqual(await found(folder), ['m-00001-of-00002.gguf']);
});

test('links to folders are followed, once each, and loops end', async t => {
  const folder = await makeFolder(t, ['real/a.gguf', 'other/b.gguf']);
  await symlink('.', join(folder, 'real', 'here'));
  await symlink('..', join(folder, 'real', 'up'));
  await symlink('../other', join(folder, 'real', 'beside'));
  await symlink('real', join(folder, 'again'));
  t.deepEqual(await found(folder), ['other/b.gguf', 'real/a.gguf']);
  t.deepEqual(await found(join(folder, 'real')), ['a.gguf', 'beside/b.gguf']);
});

test('depth, entries and models are bounded, and the scan says which limit ended it', async t => {
  const folder = await makeFolder(t, ['a.gguf', 'b.gguf', 'x/y/c.gguf']);
  const {signal} = new AbortController();
  t.deepEqual(await found(folder, {depthMax: 1}), ['a.gguf', 'b.gguf']);
  t.is((await found(folder, {filesMax: 2})).length, 2);
  t.is((await found(folder, {entriesMax: 2})).length <= 2, true);
  t.regex(
    (await scanFolder(folder, openDoor, signal, {limits: {...limits, depthMax: 1}})).cut ?? '',
    /1 folders deep/u,
  );
  t.regex((await scanFolder(folder, openDoor, signal, {limits: {...limits, filesMax: 2}})).cut ?? '', /2 models/u);
  t.regex((await scanFolder(folder, openDoor, signal, {limits: {...limits, entriesMax: 2}})).cut ?? '', /2 entries/u);
  t.is((await scanFolder(folder, openDoor, signal, {limits})).cut, undefined);
});

test('a folder that is not there is a problem in words, not an exception', async t => {
  const folder = await makeFolder(t, ['file.gguf']);
  const {signal} = new AbortController();
  t.regex((await scanFolder(join(folder, 'gone'), openDoor, signal)).problem ?? '', /does not exist/u);
  t.regex((await scanFolder(join(folder, 'file.gguf'), openDoor, signal)).problem ?? '', /not a folder/u);
});

test('a sub-folder that may not be read costs only its own models', async t => {
  const folder = await makeFolder(t, ['a.gguf', 'locked/b.gguf']);
  await chmod(join(folder, 'locked'), 0);
  t.teardown(() => chmod(join(folder, 'locked'), 0o700).catch(() => chmod(join(folder, 'lost+found'), 0o700)));
  const files = await found(folder);
  t.true(files.includes('a.gguf'));
  if (process.getuid?.() === 0) return; // who may read everything cannot see the rest
  t.false(files.includes('locked/b.gguf'));
  const {cut = ''} = await scanFolder(folder, openDoor, new AbortController().signal, {limits});
  t.true(cut.includes(join(folder, 'locked')) && cut.includes('EACCES'), cut);
  await rename(join(folder, 'locked'), join(folder, 'lost+found'));
  t.is((await scanFolder(folder, openDoor, new AbortController().signal, {limits})).cut, undefined);
});

test('an aborted scan ends with the reason', async t => {
  const folder = await makeFolder(t, ['a.gguf']);
  await t.throwsAsync(scanFolder(folder, openDoor, AbortSignal.abort(new Error('closing'))), {message: 'closing'});
});
