import {rmSync} from 'node:fs';
import {copyFile, mkdir, mkdtemp, readFile, rm} from 'node:fs/promises';
import {createHash} from 'node:crypto';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {ExecutionContext} from 'ava';
import {isProven} from '@hearsay/core';
import type {Environment, ModelStore, StoredModel} from '@hearsay/core';
import type {ModelStoreConfig} from '@hearsay/models';
import {makeTinyModels} from '../../scripts/make-tiny-models.ts';
import {realEnvironment} from './environment.ts';

export const countFile = 'tiny-count-F16.gguf';
export const otherFile = 'tiny-other-Q4_0.gguf';
export const shardFiles = ['tiny-split-00001-of-00002.gguf', 'tiny-split-00002-of-00002.gguf'] as const;

/** A folder for model files, and everything that a store over it needs. */
export interface ModelPlace {
  readonly models: string;
  readonly config: ModelStoreConfig;
  readonly environment: Environment;
  /** Messages of the levels `warn` and `error` so far. */
  readonly warnings: readonly string[];
}

/** A folder with these tiny models in it; gone after the test. */
export async function makeModelPlace(t: ExecutionContext, files: readonly string[]): Promise<ModelPlace> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-models-'));
  t.teardown(() => rm(folder, {recursive: true, force: true}));
  const models = join(folder, 'models');
  await mkdir(models);
  for (const file of files) await copyFile(await tinyFile(file), join(models, file));
  const warnings: string[] = [];
  const log: Environment['log'] = (level, message) => {
    if (level === 'warn' || level === 'error') warnings.push(message);
  };
  const config = {folders: [models], stores: [], digestCacheFile: join(folder, 'digests.json'), demoModel: undefined};
  return {models, config, environment: {...patientEnvironment(), log}, warnings};
}

/**
 * A start waits five seconds for the first look and then goes on without it. Nearly every test relies on what that has
 * found, and on a busy machine it may take longer.
 */
function patientEnvironment(): Environment {
  const environment = realEnvironment();
  const {clock} = environment;
  return {...environment, clock: {...clock, after: (ms, run) => clock.after(ms < 5000 ? ms : 10 * ms, run)}};
}

let tinyFolder: Promise<string> | undefined;

/** The path of one of the tiny models named above, made once per process. */
export async function tinyFile(file: string): Promise<string> {
  tinyFolder ??= makeTinyFolder();
  return join(await tinyFolder, file);
}

async function makeTinyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-tiny-'));
  process.once('exit', () => rmSync(folder, {recursive: true, force: true}));
  await makeTinyModels(folder, ['tiny-count-F16', 'tiny-other-Q4_0', 'tiny-split']);
  return folder;
}

/** A shared machine may be slow, and what is wrong never comes. */
const waitMsMax = 60_000;

/** Resolves when the condition holds; throws, and so fails the test, when it does not in time. */
export async function until(what: string, condition: () => boolean): Promise<void> {
  const {clock} = realEnvironment();
  const endMs = clock.monotonicMs() + waitMsMax;
  while (!condition()) {
    if (clock.monotonicMs() > endMs) throw new Error(`not within ${waitMsMax / 1000} s: ${what}`);
    await clock.sleep(10);
  }
}

/** Resolves when everything listed is proven or has a problem. */
export async function untilProven(store: ModelStore): Promise<void> {
  await until('every model is proven', () =>
    store.list().every(({digest, problem}) => isProven(digest) || problem !== undefined),
  );
}

export function named(store: ModelStore, name: string): StoredModel | undefined {
  return store.list().find(({names}) => names.includes(name));
}

/** As `sha256sum` computes it. */
export async function sha256Of(path: string): Promise<Buffer> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest();
}
