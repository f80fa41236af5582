import {mkdir, readdir, readFile, rm} from 'node:fs/promises';
import {join} from 'node:path';
import type {Environment} from '@hearsay/core';
import {processIdentity} from './process-identity.ts';
import {signalGroup} from './signal-group.ts';
import {unfinishedEnding, writeWhole} from './write-whole.ts';

/** How long a killed orphan may take to go; one that the kernel holds is left and named in the log. */
const goneWithinMs = 2_000;

const pidFile: RegExp = /^engine-(?<pid>[1-9]\d{0,9})\.pid$/u;

/**
 * Notes a child, so that the next daemon finds it if this one cannot stop it. Called again when its command line may
 * have changed. The note is whole at every moment: who is killed meanwhile must not have lost it.
 */
export async function writePidFile(runFolder: string, pid: number): Promise<void> {
  const identity = await processIdentity(pid);
  const path = pidPath(runFolder, pid);
  if (identity === undefined || identity === (await readFile(path, 'utf8').catch(() => undefined))) return;
  await writeWhole(path, identity);
}

export async function removePidFile(runFolder: string, pid: number): Promise<void> {
  await rm(pidPath(runFolder, pid), {force: true});
}

/**
 * Makes the run folder and ends the engines that a killed daemon left in it (R81). A process is touched only when it
 * started at the noted time with the noted command line: its id alone may belong to somebody else by now.
 */
export async function reapOrphans(runFolder: string, environment: Environment): Promise<void> {
  await mkdir(runFolder, {recursive: true, mode: 0o700});
  for (const name of await readdir(runFolder)) {
    if (name.endsWith(unfinishedEnding) && pidFile.test(name.slice(0, -unfinishedEnding.length)))
      await rm(join(runFolder, name), {force: true}); // a daemon was killed while it noted an engine
    const pid = Number(pidFile.exec(name)?.groups?.['pid']);
    if (Number.isNaN(pid)) continue;
    const noted = await readFile(join(runFolder, name), 'utf8');
    if (noted !== '' && noted === (await processIdentity(pid))) await reap(pid, noted, environment);
    await removePidFile(runFolder, pid);
  }
}

/** Process ids of the noted engines that still run; the folder may be missing. Touches nothing. */
export async function livingEngines(runFolder: string): Promise<readonly number[]> {
  const names = await readdir(runFolder).catch(() => []);
  const living: number[] = [];
  for (const name of names) {
    const pid = Number(pidFile.exec(name)?.groups?.['pid']);
    if (Number.isNaN(pid)) continue;
    const noted = await readFile(join(runFolder, name), 'utf8').catch(() => '');
    if (noted !== '' && noted === (await processIdentity(pid))) living.push(pid);
  }
  return living;
}

async function reap(pid: number, identity: string, {clock, log}: Environment): Promise<void> {
  signalGroup(pid, 'SIGKILL');
  const limitMs = clock.monotonicMs() + goneWithinMs;
  while ((await processIdentity(pid)) === identity) {
    if (clock.monotonicMs() > limitMs) {
      log('error', 'an engine of an earlier run cannot be ended; it still holds its memory', {pid});
      return;
    }
    await clock.sleep(10);
  }
  log('warn', 'ended an engine that an earlier run had left behind', {pid});
}

function pidPath(runFolder: string, pid: number): string {
  return join(runFolder, `engine-${pid}.pid`);
}
