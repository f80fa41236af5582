import {access, constants, mkdir, rm} from 'node:fs/promises';
import {join} from 'node:path';
import {DatabaseSync} from 'node:sqlite';
import {describeError, Fault} from '@hearsay/core';
import {readRunningDaemon} from './running-daemon.ts';
import {writeWhole} from './write-whole.ts';

export interface DataFolderLock extends AsyncDisposable {
  /** Tells the other commands where this daemon answers. */
  publish(url: string): Promise<void>;
}

/** SQLite's code for "another connection holds the lock". */
const sqliteBusy = 5;

/**
 * Takes the data folder for this process, made when missing; throws ALREADY_RUNNING when a living daemon has it.
 * SQLite is used for nothing but its lock: the system frees it however the owner ends, so that no process number has
 * to be trusted, and `daemon.json` only tells people and the other commands who it is.
 */
export async function lockDataFolder(folder: string): Promise<DataFolderLock> {
  await makeFolder(folder);
  const database = await lock(folder);
  const file = join(folder, 'daemon.json');
  try {
    await writeWhole(file, `${JSON.stringify({pid: process.pid})}\n`);
  } catch (error) {
    database.close();
    throw error;
  }
  return {
    publish: url => writeWhole(file, `${JSON.stringify({pid: process.pid, url})}\n`),
    [Symbol.asyncDispose]: async () => {
      await rm(file, {force: true});
      database.close();
    },
  };
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, {recursive: true, mode: 0o700});
  } catch (cause) {
    throw await unusable(folder, cause);
  }
}

async function lock(folder: string): Promise<DatabaseSync> {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(join(folder, 'daemon.lock'));
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database?.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy)
      throw await alreadyRunning(folder);
    throw await unusable(folder, error);
  }
}

async function alreadyRunning(folder: string): Promise<Fault> {
  const {pid, url} = (await readRunningDaemon(folder)) ?? {};
  const who = pid === undefined ? 'just starting' : `pid ${pid}, ${url ?? 'just starting'}`;
  const message =
    `hearsay is already running (${who}) on the data folder ${folder}. ` +
    'For a second node on this machine, give it a folder of its own: --data-dir DIR';
  return new Fault('ALREADY_RUNNING', message, {details: {pid, url, folder}});
}

/** SQLite only says that it could not open its file; whether this user may write there tells more. */
async function unusable(folder: string, cause: unknown): Promise<Fault> {
  const reason = await access(folder, constants.W_OK).then(
    () => cause,
    (error: unknown) => error,
  );
  const message =
    `cannot use the data folder ${folder} (${describeError(reason)}); ` +
    'let this user write there, or choose another one on a local disk: --data-dir DIR';
  return new Fault('BAD_CONFIG', message, {cause, details: {folder}});
}
