import {resolve} from 'node:path';
import {Fault} from '@hearsay/core';
import type {Environment, ModelStore} from '@hearsay/core';
import {fileCollector} from './collect-files.ts';
import {openDigestCache} from './digest-cache.ts';
import {lookAt} from './file-stamp.ts';
import {startHashing} from './hash-models.ts';
import {startKeeper} from './keep-current.ts';
import {listenerSet} from './listener-set.ts';
import {Shelf} from './shelf.ts';

export interface ModelStoreConfig {
  /** Given by config or flag; each must exist at the start. */
  readonly folders: readonly string[];
  /** Remembers the hashes of files between starts. */
  readonly digestCacheFile: string;
  /** Path of the shipped toy; undefined when it is not to be offered. */
  readonly demoModel: string | undefined;
}

/**
 * The models of this machine, kept current: found in folders, read where they lie, proven by digest in the
 * background. Throws BAD_CONFIG for a folder that does not exist. A model with damaged or missing files is listed
 * with its problem and never found.
 */
export async function startModelStore(config: ModelStoreConfig, environment: Environment): Promise<ModelStore> {
  const folders = [...new Set(config.folders.map(folder => resolve(folder)))];
  await Promise.all(folders.map(requireFolder));

  await using opening = new AsyncDisposableStack();
  const listeners = opening.use(listenerSet(environment.clock));
  const cache = opening.use(await openDigestCache(config.digestCacheFile, environment));
  const shelf = new Shelf(cache.get, listeners.changed);
  const hashing = opening.use(startHashing(shelf, cache, environment.log));
  const collect = fileCollector(folders, config.demoModel, environment.log);
  const keeper = opening.use(startKeeper(shelf, collect, hashing.wake, environment));
  await keeper.ready;

  const parts = opening.move();
  return {
    list: () => shelf.listing().models,
    find: digest => shelf.listing().byDigest.get(digest),
    onChange: listeners.add,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

async function requireFolder(folder: string): Promise<void> {
  const found = await lookAt(folder);
  if (found?.kind === 'folder') return;
  const what = found ? 'is a file; give the folder that holds it' : 'does not exist; create it or correct the path';
  throw new Fault('BAD_CONFIG', `the model folder ${folder} ${what} (models.folders or --models)`, {details: {folder}});
}
