import {mkdir} from 'node:fs/promises';
import {join} from 'node:path';
import {describeError, Fault} from '@hearsay/core';
import type {Clock, TextStore} from '@hearsay/core';
import {findEngine, installEngine, knownVersion} from '@hearsay/engine';
import type {Engine} from '@hearsay/engine';
import {demoModelPath} from '@hearsay/models';
import {fileStore} from './file-store.ts';
import {progressLines} from './progress-lines.ts';
import type {Terminal} from './terminal.ts';

export type EngineOrigin = 'registry' | 'release';

export interface EngineWish {
  /** The configured llama-server. */
  readonly path: string | undefined;
  readonly searchPath: string;
  readonly cacheFolder: string;
  /** Whether one may be installed when none is found. */
  readonly mayInstall: boolean;
}

interface Deps {
  readonly clock: Clock;
  readonly terminal: Terminal;
}

/**
 * The engine of this machine, installed when there is none. A string when there will be none: why, and what to do. A
 * node without an engine is still of use, since it can ask the others.
 */
export async function provideEngine(wish: EngineWish, deps: Deps, signal: AbortSignal): Promise<Engine | string> {
  const {path: configuredCommand, searchPath, cacheFolder} = wish;
  const found = await findEngine({configuredCommand, searchPath, cacheFolder}, deps, signal);
  if (found !== undefined) return tried(found, cacheFolder, deps, signal);
  if (!wish.mayInstall) return 'none; install one with: hearsay engine install';
  deps.terminal.error('no llama-server on this machine: installing one (--no-install leaves that out)\n');
  try {
    return await installAny(cacheFolder, undefined, deps, signal);
  } catch (error) {
    signal.throwIfAborted();
    deps.terminal.error(`${describeError(error)}\n`);
    return 'none, since the install failed; this node can still ask others. Try again with: hearsay engine install';
  }
}

/** A llama-server that cannot even say its version would fail at every request. */
async function tried(
  engine: Engine,
  cacheFolder: string,
  {clock}: Deps,
  signal: AbortSignal,
): Promise<Engine | string> {
  if (engine.version !== undefined) return engine;
  try {
    return {...engine, version: await knownVersion(engine, {clock, memory: versionsIn(cacheFolder)}, signal)};
  } catch (error) {
    signal.throwIfAborted();
    if (engine.source === 'config') throw error; // somebody chose it, and must hear of it
    return `none that works: ${firstLine(describeError(error))}`;
  }
}

/** Belongs to the machine, so that all its nodes share it. */
function versionsIn(cacheFolder: string): TextStore {
  const file = fileStore(join(cacheFolder, 'engine-versions.json'));
  return {
    read: async () => file.read(),
    async write(text) {
      await mkdir(cacheFolder, {recursive: true});
      await file.write(text);
    },
  };
}

/**
 * Installs from the given origin. Without one, first what this version was tested with, built from the npm registry,
 * and where that cannot be done the official release.
 */
export async function installAny(
  cacheFolder: string,
  from: EngineOrigin | undefined,
  {clock, terminal}: Deps,
  signal: AbortSignal,
): Promise<Engine> {
  const failures: Fault[] = [];
  for (const origin of from === undefined ? (['registry', 'release'] as const) : [from]) {
    using lines = progressLines(terminal);
    try {
      const options = {from: origin, cacheFolder, selfTestModel: demoModelPath, onProgress: lines.show};
      return await installEngine(options, {clock}, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof Fault)) throw error;
      failures.push(error);
    }
  }
  const [first, second] = failures;
  if (second === undefined) throw first ?? new Fault('INTERNAL', 'an install ended without a result');
  const message = `from the registry: ${firstLine(describeError(first))}\nfrom the release: ${second.message}`;
  throw new Fault('INSTALL_FAILED', message, {cause: first});
}

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';
