import {describeError} from '@hearsay/core';
import type {Log} from '@hearsay/core';
import type {DigestCache} from './digest-cache.ts';
import {hashFile} from './hash-files.ts';
import type {Holding} from './list-models.ts';
import type {Shelf} from './shelf.ts';

/** Proves models in the background, one file at a time: two would only compete for the disk. */
export interface Hashing extends AsyncDisposable {
  /** Call after every look: there may be something to hash. */
  readonly wake: () => void;
}

export function startHashing(shelf: Shelf, cache: DigestCache, log: Log): Hashing {
  const closing = new AbortController();
  /** Changed while being hashed: nothing to do until the next look has seen it too. */
  const stale = new WeakSet<Holding['files']>();
  let isRunning = false;
  let running = Promise.resolve();

  async function hashAll(): Promise<void> {
    isRunning = true;
    while (!closing.signal.aborted) {
      const waiting = shelf.unproven().filter(({files}) => !stale.has(files));
      if (waiting.length === 0) break;
      for (const holding of waiting) {
        if (shelf.holds(holding) && !closing.signal.aborted) await hashOne(holding);
      }
    }
    isRunning = false;
  }

  async function hashOne(holding: Holding): Promise<void> {
    try {
      const hashes = await hashFiles(holding);
      if (hashes) shelf.prove(holding, hashes);
      else stale.add(holding.files);
    } catch (error) {
      if (closing.signal.aborted || !shelf.holds(holding)) return;
      const problem = `cannot be read: ${describeError(error)}`;
      log('warn', 'a model could not be hashed; it is tried again', {model: holding.name, problem});
      shelf.describe(holding, {...holding.description, kind: 'unusable', problem, retry: true});
    }
  }

  async function hashFiles(holding: Holding): Promise<readonly string[] | undefined> {
    const hashes: string[] = [];
    for (const [index, file] of holding.files.entries()) {
      const known = holding.hashes[index] ?? cache.get(file);
      const hash = known ?? (await hashFile(file, count => goOn(holding, count), closing.signal));
      if (hash === undefined) return undefined;
      if (known === undefined) cache.put(file, hash);
      hashes.push(hash);
    }
    return hashes;
  }

  function goOn(holding: Holding, count: number): boolean {
    shelf.progress(holding, count);
    return shelf.holds(holding);
  }

  return {
    wake: () => {
      if (!isRunning) running = hashAll();
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('the model store is closing'));
      await running;
    },
  };
}
