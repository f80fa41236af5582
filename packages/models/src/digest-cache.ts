import {mkdir, open, readFile, rename, rm} from 'node:fs/promises';
import {dirname} from 'node:path';
import {describeError, hasCode} from '@hearsay/core';
import type {Environment} from '@hearsay/core';
import {isSameStamp} from './file-stamp.ts';
import type {FileStamp} from './file-stamp.ts';

/** Remembers the sha256 of files between starts, so that each is read once. */
export interface DigestCache extends AsyncDisposable {
  /** Undefined when the file was never hashed or is not the same any more. */
  readonly get: (stamp: FileStamp) => KnownHash | undefined;
  readonly put: (stamp: FileStamp, sha256: string) => void;
}

export interface KnownHash {
  /** In hex. */
  readonly sha256: string;
  /** When the file was read for it. */
  readonly checkedWallMs: number;
}

interface Entry extends FileStamp, KnownHash {}

/** Most files remembered, the latest hashed ones; some megabytes of JSON. */
const entriesMax = 20_000;

/** Hashes are written together: a burst of small files must not rewrite the cache for each. */
const saveAfterMs = 500;

/** Of the file's layout; a cache of another version is dropped, which costs only time. */
const version = 1;

/** Opens the cache kept in this file. A damaged or unwritable one costs a warning and time, never a start. */
export async function openDigestCache(path: string, {clock, log}: Environment): Promise<DigestCache> {
  const entries = await load();
  let timer: Disposable | undefined;
  let saving = Promise.resolve();

  async function load(): Promise<Map<string, Entry>> {
    try {
      return parseEntries(JSON.parse(await readFile(path, 'utf8')));
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) {
        log('warn', 'the cache of digests cannot be read; model files will be hashed again', {
          path,
          error: describeError(error),
        });
      }
      return new Map();
    }
  }

  async function save(): Promise<void> {
    try {
      await writeWhole(path, JSON.stringify({version, files: [...entries.values()]}));
    } catch (error) {
      log('warn', 'the cache of digests cannot be written; model files will be hashed again at the next start', {
        path,
        error: describeError(error),
      });
    }
  }

  function saveNow(): void {
    timer = undefined;
    saving = saving.then(save);
  }

  return {
    get: stamp => {
      const entry = entries.get(stamp.path);
      return entry && isSameStamp(entry, stamp) ? entry : undefined;
    },
    put: ({path: file, sizeBytes, mtimeMs, inode}, sha256) => {
      entries.delete(file); // to the end: the map is kept in order of age
      entries.set(file, {path: file, sizeBytes, mtimeMs, inode, sha256, checkedWallMs: clock.wallMs()});
      trim(entries);
      timer ??= clock.after(saveAfterMs, saveNow);
    },
    async [Symbol.asyncDispose]() {
      if (timer) {
        timer[Symbol.dispose]();
        saveNow();
      }
      await saving;
    },
  };
}

function parseEntries(json: unknown): Map<string, Entry> {
  if (!isRecord(json) || json['version'] !== version || !Array.isArray(json['files'])) {
    throw new Error('it is not a cache of this version');
  }
  const files: readonly unknown[] = json['files'];
  const entries = new Map(files.map(file => parseEntry(file)).map(entry => [entry.path, entry]));
  trim(entries);
  return entries;
}

function parseEntry(json: unknown): Entry {
  if (isRecord(json)) {
    const {path, sizeBytes, mtimeMs, inode, sha256, checkedWallMs} = json;
    const isHash = typeof sha256 === 'string' && /^[0-9a-f]{64}$/u.test(sha256);
    if (typeof path === 'string' && isHash && isNumber(sizeBytes) && isNumber(mtimeMs) && isNumber(inode)) {
      // Older caches did not note it: read again when there is time.
      return {path, sizeBytes, mtimeMs, inode, sha256, checkedWallMs: isNumber(checkedWallMs) ? checkedWallMs : 0};
    }
  }
  throw new Error('an entry is damaged');
}

function trim(entries: Map<string, Entry>): void {
  for (const oldest of entries.keys()) {
    if (entries.size <= entriesMax) return;
    entries.delete(oldest);
  }
}

/**
 * Appears whole or not at all, also when the machine stops in between. Paths are private: readable by the owner only.
 */
async function writeWhole(path: string, text: string): Promise<void> {
  const unfinished = `${path}.new`;
  await mkdir(dirname(path), {recursive: true});
  try {
    await using file = await open(unfinished, 'w', 0o600);
    await file.writeFile(text);
    await file.sync();
  } catch (error) {
    await rm(unfinished, {force: true});
    throw error;
  }
  await rename(unfinished, path);
}

function isRecord(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null;
}

function isNumber(json: unknown): json is number {
  return typeof json === 'number' && Number.isFinite(json);
}
