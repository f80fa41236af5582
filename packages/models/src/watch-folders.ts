import {watch} from 'node:fs';
import type {FSWatcher} from 'node:fs';
import {basename} from 'node:path';
import {describeError} from '@hearsay/core';
import type {Log} from '@hearsay/core';
import type {FileStamp} from './file-stamp.ts';

/**
 * Watches the folders of the latest scan, each on its own; replaces what it watched before. Of what is written into
 * files it tells where they have these names or could be models.
 */
export interface FolderWatch extends Disposable {
  readonly set: (folders: readonly FileStamp[], fileNames: ReadonlySet<string>) => void;
  /** False when some of the folders that were set are not watched. */
  readonly seesAll: () => boolean;
  /** Whether this very folder is watched. */
  readonly sees: (folder: FileStamp) => boolean;
}

/** Most folders watched: each costs a kernel watch, of which a user has some thousand. The poll covers the others. */
const watchesMax = 512;

/** Calls back when something in a folder may have changed. Where watching does not work, it stays silent. */
export function watchFolders(onEvent: () => void, log: Log): FolderWatch {
  const watchers = new Map<string, FSWatcher>();
  let wantedCount = 0;
  let names: ReadonlySet<string> = new Set();

  function drop(id: string): void {
    watchers.get(id)?.close();
    watchers.delete(id);
  }

  function add(id: string, folder: string): void {
    try {
      const watcher = watch(folder, {persistent: false}, (kind, fileName) => {
        // So it tells of its own end or move, after which it sees nothing of what is there; a new folder may well have
        // the number of the old one. A child of that name costs a new watch, no more.
        if (kind === 'rename' && fileName === basename(folder)) drop(id);
        // A log file that grows beside the models is no event.
        if (kind === 'rename' || fileName === null || names.has(fileName) || /\.gguf$/iu.test(fileName)) onEvent();
      });
      watcher.on('error', error => {
        drop(id);
        log('debug', 'a folder is no longer watched, only polled', {folder, error: describeError(error)});
      });
      watchers.set(id, watcher);
    } catch (error) {
      log('debug', 'a folder cannot be watched, only polled', {folder, error: describeError(error)});
    }
  }

  return {
    set: (folders, fileNames) => {
      names = fileNames;
      wantedCount = new Set(folders.map(identityOf)).size;
      const wanted = new Map(folders.slice(0, watchesMax).map(folder => [identityOf(folder), folder.path]));
      for (const id of watchers.keys()) if (!wanted.has(id)) drop(id);
      for (const [id, folder] of wanted) if (!watchers.has(id)) add(id, folder);
    },
    seesAll: () => watchers.size >= wantedCount,
    sees: folder => watchers.has(identityOf(folder)),
    [Symbol.dispose]: () => {
      for (const id of watchers.keys()) drop(id);
    },
  };
}

/** A folder that was deleted and made again has the same path, but the old watch no longer sees it. */
function identityOf({path, inode}: FileStamp): string {
  return `${inode}:${path}`;
}
