import {mkdir, mkdtemp, realpath, rm, symlink, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {openDoor} from './file-door.ts';
import {absentStamp, lookAt} from './file-stamp.ts';
import type {Look} from './file-stamp.ts';
import {stampSorter} from './sort-stamps.ts';
import type {FolderWatch} from './watch-folders.ts';

// Elsewhere nothing says whether a disk is this machine's own, so nothing is relied upon.
const isLinux = process.platform === 'linux';
const linuxTest = isLinux ? test : test.skip;
if (!isLinux)
  console.log('skipped: which file systems are known to be watched without a gap, which is so on Linux only');

/** Watches what it is told to, but for what is refused. */
function pretendedWatch(refused: (path: string) => boolean = () => false): FolderWatch & {watched: readonly string[]} {
  const watch = {
    watched: new Array<string>(),
    set: (folders: readonly {readonly path: string}[]) => {
      watch.watched = folders.map(({path}) => path).filter(path => !refused(path));
    },
    seesAll: () => true,
    sees: ({path}: {readonly path: string}) => watch.watched.includes(path),
    [Symbol.dispose]: () => {},
  };
  return watch;
}

async function makeFolder(t: ExecutionContext): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'hearsay-stamps-')));
  t.teardown(() => rm(folder, {recursive: true, force: true}));
  return folder;
}

async function look(path: string): Promise<Look> {
  const found = await lookAt(path, openDoor);
  if (found === undefined) throw new Error(`nothing at ${path}`);
  return found;
}

/** Paths of one place by who tells of them. */
async function sort(watch: FolderWatch, folders: readonly Look[], files: readonly Parameters<typeof absentStamp>[0][]) {
  const stamps = await Promise.all(files.map(async path => (await lookAt(path, openDoor)) ?? absentStamp(path)));
  const places = [{door: openDoor, folders, files: stamps}];
  const sorter = stampSorter(watch);
  sorter.watch(places);
  const {told, untold} = await sorter.sort(places, new AbortController().signal);
  const pathsOf = (part: typeof told): readonly string[] => part.flatMap(each => each.stamps.map(({path}) => path));
  return {told: pathsOf(told), untold: pathsOf(untold)};
}

linuxTest('a file in a watched folder of this machine is told of, and so is what is not there', async t => {
  const folder = await makeFolder(t);
  const [file, absent] = [join(folder, 'a.gguf'), join(folder, 'none')];
  await writeFile(file, 'a');
  t.deepEqual(await sort(pretendedWatch(), [await look(folder)], [file, absent]), {
    told: [folder, file, absent],
    untold: [],
  });
});

linuxTest('a file in a folder that cannot be watched is not told of', async t => {
  const folder = await makeFolder(t);
  const file = join(folder, 'a.gguf');
  await writeFile(file, 'a');
  const watch = pretendedWatch(path => path === folder);
  t.deepEqual(await sort(watch, [await look(folder)], [file]), {told: [], untold: [folder, file]});
});

linuxTest('S74: a link is told of when the folder of what it leads to is watched too', async t => {
  const folder = await makeFolder(t);
  const [links, blobs] = [join(folder, 'links'), join(folder, 'blobs')];
  await mkdir(links);
  await mkdir(blobs);
  await writeFile(join(blobs, 'sha256-1'), 'a');
  const link = join(links, 'a.gguf');
  await symlink(join('..', 'blobs', 'sha256-1'), link);
  const watch = pretendedWatch();
  t.deepEqual(await sort(watch, [await look(links)], [link]), {told: [links, link], untold: []});
  t.deepEqual(watch.watched, [links, blobs]);
  const half = pretendedWatch(path => path === blobs);
  t.deepEqual(await sort(half, [await look(links)], [link]), {told: [links], untold: [link]});
});

linuxTest('S74: what lies on a file system that others may change is not told of, also behind a link', async t => {
  const folder = await makeFolder(t);
  const link = join(folder, 'a.gguf');
  await symlink('/proc/version', link);
  const places = [await look(folder), await look('/proc/sys')];
  t.deepEqual(await sort(pretendedWatch(), places, [link]), {told: [folder], untold: ['/proc/sys', link]});
});

linuxTest(
  'S74: a link that leads on by further links is not told of, as they may change where nobody watches',
  async t => {
    const folder = await makeFolder(t);
    const [links, versions, hops] = [join(folder, 'links'), join(folder, 'versions'), join(folder, 'hops')];
    for (const each of [links, versions, join(versions, 'v1'), hops]) await mkdir(each);
    await writeFile(join(versions, 'v1', 'a.gguf'), 'a');
    await symlink('v1', join(versions, 'current'));
    await symlink('../versions/v1/a.gguf', join(hops, 'hop'));
    const [byFolder, byLink] = [join(links, 'by-folder.gguf'), join(links, 'by-link.gguf')];
    await symlink('../versions/current/a.gguf', byFolder);
    await symlink('../hops/hop', byLink);
    t.deepEqual(await sort(pretendedWatch(), [await look(links)], [byFolder, byLink]), {
      told: [links],
      untold: [byFolder, byLink],
    });
  },
);

linuxTest(
  'S74: a folder behind a link is told of where the link lies in a watched folder and leads straight to it',
  async t => {
    const folder = await makeFolder(t);
    const [models, versions] = [join(folder, 'models'), join(folder, 'versions')];
    for (const each of [models, versions, join(versions, 'v1')]) await mkdir(each);
    await symlink('v1', join(versions, 'current'));
    const [straight, onward, root] = [join(models, 'straight'), join(models, 'onward'), join(folder, 'root')];
    await symlink('../versions/v1', straight);
    await symlink('../versions/current', onward);
    await symlink('versions/v1', root);
    const folders = [await look(models), await look(straight), await look(onward), await look(root)];
    t.deepEqual(await sort(pretendedWatch(), folders, []), {told: [models, straight], untold: [onward, root]});
  },
);
