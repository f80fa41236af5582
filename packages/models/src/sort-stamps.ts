import {lstat, readlink, realpath, statfs} from 'node:fs/promises';
import {basename, dirname, resolve} from 'node:path';
import type {PlaceFiles, PlaceStamps} from './collect-files.ts';
import type {FileDoor} from './file-door.ts';
import {areSameStamps, isAbsent, lookAt} from './file-stamp.ts';
import type {FileStamp, Look} from './file-stamp.ts';
import type {FolderWatch} from './watch-folders.ts';

/**
 * File systems, as Linux numbers them, that only this machine writes to, so that a watch sees every change. A network
 * disk tells of local changes only. What is not listed here, as everything on other systems, counts as one of those.
 */
const ownFileSystems: ReadonlySet<number> = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0x2fc12fc1, // zfs
  0xf2f52010, // f2fs
  0xca451a4e, // bcachefs
  0x01021994, // tmpfs
  0x794c7630, // overlay
  0x4d44, // vfat
  0x2011bab0, // exfat
  0x7366746e, // ntfs3
]);

/** Files asked for at once; how many of them reach the disk together is for the door to say. */
const filesAtOnce = 32;

export interface SortedStamps {
  /** A watch tells when one of these changes, or there is nothing there that could be missed. */
  readonly told: readonly PlaceStamps[];
  /** Only a look shows that one of these has changed. */
  readonly untold: readonly PlaceStamps[];
}

/** The folders that tell together of all that may happen to a file or a folder, and its names in them. */
interface Teller {
  readonly folders: readonly Look[];
  readonly names: readonly string[];
}

/** By path; none for what nobody tells of. */
type Tellers = ReadonlyMap<string, Teller>;

export interface StampSorter {
  /** Resolves with what is told by whom; sees to it that the folders of linked files are watched too. */
  sort(places: readonly PlaceFiles[], signal: AbortSignal): Promise<SortedStamps>;
  /** Watches the folders of these places, and of what links in them led to when they were sorted last. */
  watch(places: readonly PlaceFiles[]): void;
}

/** Tells what is watched without a gap from what has to be compared again and again. */
export function stampSorter(watch: FolderWatch): StampSorter {
  let sorted: readonly PlaceFiles[] | undefined;
  let tellers: readonly Tellers[] = [];

  function watchAll(places: readonly PlaceFiles[]): void {
    const own = places.flatMap(({folders}) => folders);
    const ownPaths = new Set(own.map(({path}) => path));
    const all = tellers.flatMap(each => [...each.values()]);
    const others = new Map(all.flatMap(({folders}) => folders).map(look => [look.path, look]));
    const names = new Set(all.flatMap(each => each.names));
    watch.set([...own, ...[...others.values()].filter(({path}) => !ownPaths.has(path))], names);
  }

  return {
    watch: watchAll,
    async sort(places, signal) {
      if (sorted === undefined || !areSamePlaces(sorted, places)) {
        tellers = await Promise.all(places.map(async place => findTellers(place, signal)));
        sorted = places;
        watchAll(places);
      }
      const isTold = (stamp: FileStamp, index: number): boolean =>
        isAbsent(stamp) || tellers[index]?.get(stamp.path)?.folders.every(look => watch.sees(look)) === true;
      const [told, untold]: [PlaceStamps[], PlaceStamps[]] = [[], []];
      for (const [index, {door, folders, files}] of places.entries()) {
        const [seen, unseen]: [FileStamp[], FileStamp[]] = [[], []];
        for (const stamp of [...folders, ...files]) (isTold(stamp, index) ? seen : unseen).push(stamp);
        told.push({door, stamps: seen});
        untold.push({door, stamps: unseen});
      }
      return {told, untold};
    },
  };
}

function areSamePlaces(a: readonly PlaceFiles[], b: readonly PlaceFiles[]): boolean {
  return (
    a.length === b.length &&
    a.every((place, index) => {
      const other = b[index] ?? place;
      return areSameStamps(place.folders, other.folders) && areSameStamps(place.files, other.files);
    })
  );
}

/** Empty when the disk does not answer: nothing that it would tell is relied upon then. */
async function findTellers({door, folders, files}: PlaceFiles, signal: AbortSignal): Promise<Tellers> {
  const tellers = new Map<string, Teller>();
  const ways = new Ways(folders, door);
  try {
    for (const folder of folders) {
      if (await ways.tellsOfItself(folder)) tellers.set(folder.path, {folders: [folder], names: []});
    }
    for (let start = 0; start < files.length; start += filesAtOnce) {
      signal.throwIfAborted();
      const batch = files.slice(start, start + filesAtOnce).map(async ({path}) => {
        const found = await ways.tellersOf(path);
        if (found !== undefined) tellers.set(path, found);
      });
      await Promise.all(batch);
    }
    return tellers;
  } catch {
    signal.throwIfAborted();
    return new Map();
  }
}

/** Which folders of one place, and around it, tell of what happens in them. */
class Ways {
  readonly #door: FileDoor;
  readonly #folders: Map<string, Promise<Look | undefined>>;
  /** By device. */
  readonly #isOwn = new Map<number, Promise<boolean>>();

  constructor(folders: readonly Look[], door: FileDoor) {
    this.#door = door;
    this.#folders = new Map(folders.map(folder => [folder.path, Promise.resolve(folder)]));
  }

  /** The folder of a file and, where it is a link, that of the file it leads to; undefined if one does not tell. */
  async tellersOf(path: string): Promise<Teller | undefined> {
    const own = await this.#tellerOf(path);
    if (own === undefined || !own.isLink) return own && {folders: [own.folder], names: [basename(path)]};
    const target = await this.#door.pass(() => straightTarget(path));
    const other = target === undefined ? undefined : await this.#tellerOf(target);
    if (target === undefined || other === undefined) return undefined;
    return {folders: [own.folder, other.folder], names: [basename(target)]};
  }

  /** A link to a folder is told of where it lies: not that of a whole place, which lies in a folder of other things. */
  async tellsOfItself(folder: Look): Promise<boolean> {
    const {path} = folder;
    if (!(await this.isOwn(folder))) return false;
    const found = await this.#door.pass(() => lstat(path).catch(() => undefined));
    if (found?.isSymbolicLink() !== true) return found !== undefined;
    return this.#folders.has(dirname(path)) && (await this.#door.pass(() => straightTarget(path))) !== undefined;
  }

  async #tellerOf(path: string): Promise<{readonly folder: Look; readonly isLink: boolean} | undefined> {
    const folder = await this.#folderAt(dirname(path));
    if (folder === undefined || !(await this.isOwn(folder))) return undefined;
    const file = await this.#door.pass(() => lstat(path).catch(() => undefined));
    // A single file may be mounted from elsewhere, which its folder does not show.
    return file?.dev === folder.device ? {folder, isLink: file.isSymbolicLink()} : undefined;
  }

  #folderAt(path: string): Promise<Look | undefined> {
    const found = this.#folders.get(path) ?? lookAt(path, this.#door);
    this.#folders.set(path, found);
    return found;
  }

  /** Whether what happens in this folder happens on this machine. */
  isOwn({path, device}: Look): Promise<boolean> {
    const found = this.#isOwn.get(device) ?? this.#door.pass(() => isOnOwnFileSystem(path));
    this.#isOwn.set(device, found);
    return found;
  }
}

/** Where a link leads; undefined where further links lead on, each of which may change in a folder of its own. */
async function straightTarget(path: string): Promise<string | undefined> {
  try {
    const [folder, next, target] = [await realpath(dirname(path)), await readlink(path), await realpath(path)];
    return resolve(folder, next) === target ? target : undefined;
  } catch {
    return undefined; // it leads nowhere now
  }
}

async function isOnOwnFileSystem(path: string): Promise<boolean> {
  try {
    return ownFileSystems.has((await statfs(path)).type);
  } catch {
    return false; // it is gone, or the system does not say
  }
}
