import {stat} from 'node:fs/promises';
import {basename} from 'node:path';
import {isObject} from '@hearsay/core';
import type {Clock, TextStore} from '@hearsay/core';
import {engineVersion} from './find-engine.ts';
import type {Engine} from './find-engine.ts';
import {isScript} from './is-script.ts';
import {anyLibrary, programFiles} from './program-files.ts';

/** Versions remembered, the latest: more than one machine has builds in use. */
const knownMax = 16;

interface Known {
  /** The files that said it, as they were then. */
  readonly stamp: string;
  readonly version: string;
}

/**
 * As `engineVersion`, but llama-server is run only when it has changed since it was asked last: a start waits for the
 * answer, which takes a build with many backends a good part of a second. Losing the memory costs one question.
 */
export async function knownVersion(
  engine: Pick<Engine, 'command' | 'leadingArguments'>,
  deps: {readonly clock: Clock; readonly memory: TextStore},
  signal?: AbortSignal,
): Promise<string> {
  const stamp = await stampOf(engine.command);
  if (stamp === undefined) return engineVersion(engine, deps, signal);
  const known = await recall(deps.memory);
  const same = known.find(each => each.stamp === stamp);
  if (same !== undefined) return same.version;
  const version = await engineVersion(engine, deps, signal);
  const others = known.filter(each => !isOfSameProgram(each.stamp, stamp));
  await remember(deps.memory, [...others, {stamp, version}].slice(-knownMax));
  return version;
}

/** Linux notes here where all other libraries are, and anew when one comes or goes. */
const systemLibraries = '/etc/ld.so.cache';

/**
 * The program that runs and what it is linked with, the program first. Undefined where another program may be behind
 * it, which can change while these files do not: a script, or a link to the launcher of a tool that keeps versions.
 */
async function stampOf(command: string): Promise<string | undefined> {
  const files = (await programFiles(command, anyLibrary)).toReversed();
  const [program] = files;
  if (program === undefined || !basename(program.path).startsWith('llama')) return undefined;
  if (await isScript(program.path).catch(() => true)) return undefined;
  const lines = files.map(file => [file.path, file.sizeBytes, file.mtimeMs, file.ctimeMs, file.inode]);
  const system = await stat(systemLibraries).catch(() => undefined); // which other systems do not have
  if (system !== undefined) lines.push([systemLibraries, system.size, system.mtimeMs]);
  return lines.map(line => line.join('|')).join('\n');
}

function isOfSameProgram(one: string, other: string): boolean {
  return one.split('|', 1)[0] === other.split('|', 1)[0];
}

/** No longer than what an engine says, and fit for a terminal, whoever has written the file. */
const versionLike: RegExp = /^\P{Cc}{1,200}$/u;

async function recall(memory: TextStore): Promise<readonly Known[]> {
  try {
    const json: unknown = JSON.parse((await memory.read()) ?? '[]');
    const entries: readonly unknown[] = Array.isArray(json) ? json : [];
    return entries.flatMap((entry): readonly Known[] => {
      if (!isObject(entry) || typeof entry['stamp'] !== 'string' || typeof entry['version'] !== 'string') return [];
      if (!versionLike.test(entry['version'])) return [];
      return [{stamp: entry['stamp'], version: entry['version']}];
    });
  } catch {
    return []; // damaged, or not ours to read
  }
}

async function remember(memory: TextStore, known: readonly Known[]): Promise<void> {
  try {
    await memory.write(JSON.stringify(known));
  } catch {
    // A cache that cannot be written costs one question at each start, as if there were none.
  }
}
