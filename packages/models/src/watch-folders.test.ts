import {mkdir, mkdtemp, rename, rm, stat, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {until} from '../../../test/support/until.ts';
import {openDoor} from './file-door.ts';
import {lookAt} from './file-stamp.ts';
import type {Look} from './file-stamp.ts';
import {watchFolders} from './watch-folders.ts';

/** Elsewhere a watch tells of less, and nothing relies upon it. */
const linuxTest = process.platform === 'linux' ? test : test.skip;

async function trial(t: ExecutionContext) {
  const place = await mkdtemp(join(tmpdir(), 'hearsay-watch-'));
  const folder = join(place, 'models');
  await mkdir(folder);
  const seen = {events: 0};
  const watch = watchFolders(
    () => (seen.events += 1),
    () => {},
  );
  t.teardown(async () => {
    watch[Symbol.dispose]();
    await rm(place, {recursive: true, force: true});
  });
  return {place, folder, seen, watch};
}

async function look(path: string): Promise<Look> {
  const found = await lookAt(path, openDoor);
  if (found === undefined) throw new Error(`nothing at ${path}`);
  return found;
}

linuxTest(
  'a folder that was made again is watched again, even when the system gives it the number of the old',
  async t => {
    const {folder, seen, watch} = await trial(t);
    const old = await look(folder);
    watch.set([old], new Set());
    await rm(folder, {recursive: true});
    await mkdir(folder);
    await until('the end of the old one', () => seen.events > 0);
    t.false(watch.sees(old));
    const {inode} = old;
    watch.set([{...(await look(folder)), inode}], new Set());
    const before = seen.events;
    await writeFile(join(folder, 'a.gguf'), 'a');
    await until('the news', () => seen.events > before);
    t.true(watch.sees(old));
  },
);

linuxTest('a folder that another one has replaced is not taken for watched', async t => {
  const {place, folder, seen, watch} = await trial(t);
  const old = await look(folder);
  watch.set([old], new Set());
  await rename(folder, join(place, 'away'));
  await mkdir(folder);
  await until('the news', () => seen.events > 0);
  t.false(watch.sees(old));
  t.not((await stat(folder)).ino, old.inode);
});
