import {resolve} from 'node:path';
import {Fault} from '@hearsay/core';
import type {Environment, LoadedFacts, ModelStore} from '@hearsay/core';
import {fileCollector} from './collect-files.ts';
import {openDigestCache} from './digest-cache.ts';
import {fileDoor} from './file-door.ts';
import type {FileDoor} from './file-door.ts';
import {lookAt} from './file-stamp.ts';
import type {Look} from './file-stamp.ts';
import {startHashing} from './hash-models.ts';
import {startKeeper} from './keep-current.ts';
import {listenerSet} from './listener-set.ts';
import type {StorePlace} from './scan-place.ts';
import {Shelf} from './shelf.ts';

export interface ModelStoreConfig {
  /** Given by config or flag; each must exist at the start. */
  readonly folders: readonly string[];
  /** Stores of programs that may have models here; each may be missing. */
  readonly stores: readonly StorePlace[];
  /** Remembers the hashes of files between starts. */
  readonly digestCacheFile: string;
  /** Path of the shipped toy; undefined when it is not to be offered. */
  readonly demoModel: string | undefined;
  /** Whether models of an architecture can be run here; all unless given. */
  readonly knowsArchitecture?: ((architecture: string) => Promise<boolean>) | undefined;
}

/** A store that can be told what engines find out. */
export interface OwnModelStore extends ModelStore {
  /** An engine has loaded the model with this key and says what it can do. */
  confirm(key: string, told: LoadedFacts): void;
}

/**
 * The models of this machine, kept current: found in stores and folders, read where they lie, proven by digest in the
 * background. Throws BAD_CONFIG for a folder that does not exist. A model with damaged or missing files is listed
 * with its problem and never found.
 */
export async function startModelStore(config: ModelStoreConfig, environment: Environment): Promise<OwnModelStore> {
  const folders = [...new Set(config.folders.map(folder => resolve(folder)))];
  const closing = new AbortController();
  const places = [...config.stores, ...folders.map(path => ({kind: 'folder', path}) as const)].map(place => ({
    place,
    door: fileDoor(environment.clock, closing.signal),
  }));
  const given = places.filter(({place}) => place.kind === 'folder');
  await Promise.all(given.map(({place, door}) => requireFolder(place.path, door)));

  await using opening = new AsyncDisposableStack();
  const listeners = opening.use(listenerSet(environment.clock));
  const cache = opening.use(await openDigestCache(config.digestCacheFile, environment));
  const shelf = new Shelf(cache.get, listeners.changed);
  const hashing = opening.use(startHashing(shelf, cache, environment, closing.signal));
  const knows = config.knowsArchitecture ?? (async () => true);
  const collect = fileCollector({places, demoModel: config.demoModel}, environment, closing.signal);
  const keeper = opening.use(startKeeper(shelf, {collect, knows, onLooked: hashing.wake}, environment));
  // First of all when it closes: nobody need wait for a disk that does not answer.
  opening.defer(() => closing.abort(new Error('the model store is closing')));
  await keeper.ready;

  const parts = opening.move();
  return {
    list: () => shelf.listing().models,
    find: digest => shelf.listing().byDigest.get(digest),
    onChange: listeners.add,
    confirm: (key, told) => shelf.confirm(key, told),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

async function requireFolder(folder: string, door: FileDoor): Promise<void> {
  let found: Look | undefined;
  try {
    found = await lookAt(folder, door);
  } catch {
    return; // a drive that is away may come back; until then every look says so
  }
  if (found?.kind === 'folder') return;
  const what = found ? 'is a file; give the folder that holds it' : 'does not exist; create it or correct the path';
  throw new Fault('BAD_CONFIG', `the model folder ${folder} ${what} (models.folders or --models)`, {details: {folder}});
}
