import {availableParallelism} from 'node:os';
import {join} from 'node:path';
import {Fault, type Clock} from '@hearsay/core';
import {
  commitEngine,
  enginesFolder,
  installedEngine,
  makePartialFolder,
  openWorkFolder,
  platform,
  removeLeftovers,
  type EngineManifest,
} from './engine-store.ts';
import type {Engine} from './find-engine.ts';
import {installHint} from './install-hint.ts';
import type {PinnedPackages} from './install-from-registry.ts';
import type {EngineVariant} from './install-from-release.ts';
import {lockInstalls} from './lock-installs.ts';

export interface InstallProgress {
  readonly step: 'wait' | 'download' | 'unpack' | 'compile' | 'link' | 'verify';
  readonly done: number;
  readonly total: number;
  /** What is being worked on, for people. */
  readonly note: string;
}

export interface InstallOptions {
  /** `release`: an official binary. `registry`: built from npm packages, for where only the npm registry is reached. */
  readonly from: 'registry' | 'release';
  /** Engines appear in its folder `engines`. Not inside a checkout: an engine outlives it. */
  readonly cacheFolder: string;
  /** A small model file that the new engine must load and continue by a token; without one that check is left out. */
  readonly selfTestModel?: string | undefined;
  /** `registry`: the C++ compiler, usually $CXX; else g++ or clang++. */
  readonly compiler?: string | undefined;
  /** `registry`: compilers at once; as many as there are cores unless given. */
  readonly jobs?: number | undefined;
  /** `registry`: other packages than the pinned ones. */
  readonly packages?: PinnedPackages | undefined;
  /** `release`: for which hardware; `metal` on macOS, else `cpu`, unless given. */
  readonly variant?: EngineVariant | undefined;
  /** `release`: a tag such as `b9876`; else the newest. */
  readonly release?: string | undefined;
  /** `release`: base URL of a GitHub-like API. */
  readonly releaseApi?: string | undefined;
  readonly onProgress?: ((progress: InstallProgress) => void) | undefined;
}

/** How one kind of engine is made. */
export interface EngineRecipe {
  /** The engine's folder; equal names are equal engines. */
  readonly name: string;
  /** Puts the engine into the empty `target`. What it leaves whole in `work` is used again after a kill. */
  readonly make: (work: string, target: string) => Promise<MadeEngine>;
}

export type MadeEngine = Pick<EngineManifest, 'executable' | 'leadingArguments' | 'origin'>;

/**
 * Installs an engine, or returns the same one installed before. Only one process installs at a time, the others wait
 * and then find the result. The engine appears by one rename after it has been run; the next call resumes a killed one.
 */
export async function installEngine(
  options: InstallOptions,
  deps: {readonly clock: Clock},
  signal?: AbortSignal,
): Promise<Engine> {
  const {cacheFolder} = options;
  const report = options.onProgress ?? (() => {});
  try {
    const recipe = await recipeFor(options, report, deps, signal);
    const ready = await installedEngine(cacheFolder, recipe.name);
    if (ready !== undefined) return ready;

    const onWait = (owner: string): void => report({step: 'wait', done: 0, total: 1, note: `for ${owner}`});
    using _ = await lockInstalls(enginesFolder(cacheFolder), onWait, deps, signal);
    const madeMeanwhile = await installedEngine(cacheFolder, recipe.name);
    if (madeMeanwhile !== undefined) return madeMeanwhile;

    const work = await openWorkFolder(cacheFolder, recipe.name);
    const partial = await makePartialFolder(cacheFolder, recipe.name);
    const made = await recipe.make(work, partial);
    const engine = {command: join(partial, made.executable), leadingArguments: made.leadingArguments};
    const {verifyEngine} = await import('./verify-engine.ts');
    const version = await verifyEngine(engine, options.selfTestModel, report, deps, signal);
    await commitEngine(cacheFolder, recipe.name, partial, {...made, version, installedAtMs: deps.clock.wallMs()});
    await removeLeftovers(cacheFolder);
    const installed = await installedEngine(cacheFolder, recipe.name);
    if (installed === undefined) throw new Fault('INTERNAL', `the engine in ${cacheFolder} vanished after its install`);
    return installed;
  } catch (error) {
    signal?.throwIfAborted();
    throw withHint(error);
  }
}

/** One line for a person. */
export function formatProgress(progress: InstallProgress): string {
  const {step, done, total, note} = progress;
  return `${step} ${total > 1 ? `${done}/${total} ` : ''}${note}`.trimEnd();
}

/** Loads only what it needs: nearly every start of a node finds its engine installed. */
async function recipeFor(
  options: InstallOptions,
  report: (progress: InstallProgress) => void,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<EngineRecipe> {
  switch (options.from) {
    case 'registry': {
      const {pinnedPackages, registryRecipe} = await import('./install-from-registry.ts');
      const {compiler, jobs = availableParallelism(), packages = pinnedPackages} = options;
      return registryRecipe({packages, platform, compiler, jobs, report}, deps, signal);
    }
    case 'release': {
      const {releaseRecipe} = await import('./install-from-release.ts');
      return releaseRecipe({...options, platform, report}, deps, signal);
    }
  }
}

/** Whatever broke, the person who reads it wants an engine. */
function withHint(error: unknown): Fault {
  const fault = error instanceof Fault ? error : new Fault('INSTALL_FAILED', String(error), {cause: error});
  const message = `could not install an engine: ${fault.message}\n${installHint}`;
  return new Fault(fault.code, message, {cause: error, details: fault.details});
}
