import {createHash} from 'node:crypto';
import {createWriteStream} from 'node:fs';
import {access, mkdir, readdir, rename, rm, rmdir, statfs, symlink} from 'node:fs/promises';
import type {IncomingMessage} from 'node:http';
import {basename, join} from 'node:path';
import {pipeline} from 'node:stream/promises';
import {describeError, Fault, formatBytes, hasCode} from '@hearsay/core';
import type {Random} from '@hearsay/core';
import {badRequest} from '../problem.ts';
import type {Problem} from '../problem.ts';

/** Files that Ollama clients bring, kept in hearsay's own store of models, by their digests. */
export interface Blobs {
  has(digest: string): Promise<boolean>;
  /**
   * Takes the body of an upload, whose bytes must have the digest; undefined when it is kept. `begin` is called when
   * nothing stands against it.
   */
  receive(digest: string, upload: IncomingMessage, begin: () => void): Promise<Problem | undefined>;
  /** Makes the blob a model: the store finds what has the name of a model file, which is the answer. */
  offer(digest: string, fileName: string): Promise<string>;
  /** Takes that back; the blob stays. */
  withdraw(digest: string, fileName: string): Promise<void>;
  /** Does what is about files of one name in turn: of one that is no model the store tells only its name. */
  inTurn<T>(fileName: string, work: () => Promise<T>): Promise<T>;
}

const digestForm = /^sha256:[0-9a-f]{64}$/u;

/** Longest pause within an upload: slow links send something more often than that. */
const pauseMsMax = 60_000;

/** Characters of a file name that mean something to no system. */
const unsafe = /[^\w.-]+/gu;

/** File systems take 255 bytes. */
const stemLengthMax = 200;

const partEnding = '.part';

/** `folder` is the root of the store; without one nothing can be kept. */
export function openBlobs(folder: string | undefined, random: Random): Blobs {
  const pathOf = (digest: string): string => join(folder ?? '', 'blobs', digest.replace(':', '-'));
  const placeOf = (digest: string): string => join(folder ?? '', digest.slice('sha256:'.length, 'sha256:'.length + 12));
  const arriving = new Set<string>();
  /** The last of those who wait for a name; there are no more of them than connections. */
  const turns = new Map<string, Promise<unknown>>();
  return {
    async has(digest) {
      if (folder === undefined || !digestForm.test(digest)) return false;
      try {
        await access(pathOf(digest));
        return true;
      } catch {
        return false; // nobody has brought it yet
      }
    },
    async receive(digest, upload, begin) {
      if (!digestForm.test(digest)) return badRequest('invalid digest: it must be sha256: and 64 hexadecimal digits');
      if (folder === undefined) throw new Fault('BAD_REQUEST', 'this node has no data folder to keep files in');
      const path = pathOf(digest);
      const part = `${path}.${Buffer.from(random.bytes(6)).toString('hex')}${partEnding}`;
      arriving.add(part);
      upload.setTimeout(pauseMsMax, () => upload.destroy());
      try {
        await mkdir(join(folder, 'blobs'), {recursive: true});
        await removeRests(join(folder, 'blobs'), arriving);
        const lacking = await lacksRoom(join(folder, 'blobs'), upload);
        if (lacking) return lacking;
        begin();
        const got = await save(upload, part);
        if (got !== digest) return badRequest(`digest mismatch, expected "${digest}", got "${got}"`);
        await rename(part, path);
        return undefined;
      } catch (cause) {
        if (upload.destroyed && !upload.complete) throw new Fault('CANCELLED', 'the upload broke off', {cause});
        if (hasCode(cause, 'ENOSPC', 'EDQUOT')) return noRoom('it is full');
        const why = describeError(cause).replace(/, \w+ '.*$/su, ''); // without the path
        return {...noRoom(''), status: 500, code: 'cannot_keep', message: `the file cannot be kept: ${why}`};
      } finally {
        upload.setTimeout(0);
        await rm(part, {force: true});
        arriving.delete(part);
      }
    },
    async offer(digest, fileName) {
      const [place, name] = [placeOf(digest), modelFileName(fileName)];
      await mkdir(place, {recursive: true});
      await rm(join(place, name), {force: true});
      await symlink(join('..', 'blobs', digest.replace(':', '-')), join(place, name));
      return name;
    },
    async withdraw(digest, fileName) {
      const place = placeOf(digest);
      await rm(join(place, modelFileName(fileName)), {force: true});
      await rmdir(place).catch(() => undefined); // offered under another name too
    },
    async inTurn(fileName, work) {
      const name = modelFileName(fileName);
      const before = turns.get(name);
      const turn = (async () => {
        await before?.catch(() => undefined); // whoever asked for it has been told
        return work();
      })();
      turns.set(name, turn);
      try {
        return await turn;
      } finally {
        if (turns.get(name) === turn) turns.delete(name);
      }
    },
  };
}

/** A file that cannot fit is not taken at all: until it is known by failing, everything else on the disk suffers. */
async function lacksRoom(folder: string, {headers}: IncomingMessage): Promise<Problem | undefined> {
  const {bavail, bsize} = await statfs(folder);
  const [freeBytes, neededBytes] = [bavail * bsize, Number(headers['content-length'] ?? 0)];
  if (neededBytes <= freeBytes) return undefined;
  return noRoom(`the file takes ${formatBytes(neededBytes)}, and ${formatBytes(freeBytes)} are free`);
}

/** Closes the connection: the rest of the file may still come. */
function noRoom(why: string): Problem {
  const message = `there is no room on the disk of this node: ${why}; make room there, or bring the file to another node`;
  const headers = {connection: 'close', 'x-should-retry': 'false'};
  return {kind: 'problem', status: 507, type: 'server_error', code: 'no_room', message, headers};
}

/** What uploads have left that were under way when a daemon was killed: nobody goes on with them. */
async function removeRests(folder: string, arriving: ReadonlySet<string>): Promise<void> {
  const parts = (await readdir(folder)).filter(name => name.endsWith(partEnding)).map(name => join(folder, name));
  await Promise.all(parts.filter(part => !arriving.has(part)).map(async part => rm(part, {force: true})));
}

/** Pure: a name by which the store finds the file, as like the client's own as can be. */
function modelFileName(fileName: string): string {
  const stem = basename(fileName)
    .replace(/\.gguf$/iu, '')
    .replace(unsafe, '-')
    .replace(/^[.-]+/u, '')
    .slice(0, stemLengthMax);
  return `${stem === '' ? 'model' : stem}.gguf`;
}

/** Writes to disk as it comes, so that no size of a model matters; the digest of all of it. */
async function save(upload: IncomingMessage, path: string): Promise<string> {
  const hash = createHash('sha256');
  async function* hashed(): AsyncGenerator<Uint8Array> {
    // When the disk is full, the client must still be told.
    for await (const chunk of upload.iterator({destroyOnReturn: false})) {
      const bytes: Uint8Array = chunk;
      hash.update(bytes);
      yield bytes;
    }
  }
  await pipeline(hashed, createWriteStream(path, {flags: 'wx'}));
  return `sha256:${hash.digest('hex')}`;
}
