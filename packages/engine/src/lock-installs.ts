import {mkdir, readFile, writeFile} from 'node:fs/promises';
import {rmSync} from 'node:fs';
import {join} from 'node:path';
import {DatabaseSync} from 'node:sqlite';
import {Fault, type Clock} from '@hearsay/core';

/** An install takes a minute or two; whoever has waited this long is better told than kept. */
const waitMsMax = 30 * 60_000;

const pollMs = 250;

/** SQLite's code for "another connection holds the lock". */
const sqliteBusy = 5;

/**
 * Waits until no other process installs into this folder, and keeps others out until disposed. SQLite is used for
 * nothing but its lock: the operating system frees it when the owner dies, so a killed install leaves no stale lock and
 * no process number has to be trusted.
 */
export async function lockInstalls(
  folder: string,
  onWait: (owner: string) => void,
  deps: {readonly clock: Clock},
  signal?: AbortSignal,
): Promise<Disposable> {
  await mkdir(folder, {recursive: true});
  const ownerFile = join(folder, '.install.owner'); // only for people who wait
  const giveUpAtMs = deps.clock.monotonicMs() + waitMsMax;
  let lastOwner: string | undefined;
  for (;;) {
    signal?.throwIfAborted();
    const lock = tryLock(join(folder, '.install.lock'));
    if (lock !== undefined) {
      await writeFile(ownerFile, `process ${process.pid}`);
      return {
        [Symbol.dispose]: () => {
          rmSync(ownerFile, {force: true});
          lock.close();
        },
      };
    }
    const owner = await readFile(ownerFile, 'utf8').catch(() => 'another process');
    if (owner !== lastOwner) onWait(owner);
    lastOwner = owner;
    if (deps.clock.monotonicMs() > giveUpAtMs)
      throw new Fault('TIMED_OUT', `${owner} has been installing an engine for too long; end it and try again`, {
        details: {owner},
      });
    await deps.clock.sleep(pollMs, signal);
  }
}

function tryLock(file: string): DatabaseSync | undefined {
  const database = new DatabaseSync(file);
  try {
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy) return undefined;
    throw new Fault('INSTALL_FAILED', `cannot lock ${file}; choose a cache folder on a local disk`, {cause: error});
  }
}
