import {describeError, Fault} from '@hearsay/core';
import type {Environment} from '@hearsay/core';
import type {DigestCache} from './digest-cache.ts';
import {hashFile} from './hash-files.ts';
import type {FileStamp} from './file-stamp.ts';
import type {Holding} from './list-models.ts';
import type {Shelf} from './shelf.ts';

/** Proves models in the background, one file at a time: two would only compete for the disk. */
export interface Hashing extends AsyncDisposable {
  /** Call after every look: there may be something to hash. */
  readonly wake: () => void;
}

/** Share of the time spent on models that nobody else can use before: soon done, and the disk stays usable. */
const provingShare = 0.7;

/** Share of the time spent on bytes that are known already: nobody waits for it. */
const checkingShare = 0.1;

/** Read so often again: disks forget. */
const checkEveryMs = 30 * 24 * 3600_000;

/** Works so long before it rests. */
const spellMs = 20;

/** Ends when the signal aborts, with which the doors close too: that is no trouble of a model. */
export function startHashing(
  shelf: Shelf,
  cache: DigestCache,
  {clock, log}: Environment,
  signal: AbortSignal,
): Hashing {
  /** Changed while being hashed: nothing to do until the next look has seen it too. */
  const stale = new WeakSet<Holding['files']>();
  /** Read in this run, whatever became of it. */
  const checked = new WeakSet<Holding['files']>();
  let isRunning = false;
  /** Somebody has looked since we last asked whether there is new work. */
  let isNews = false;
  let running = Promise.resolve();

  async function hashAll(): Promise<void> {
    isRunning = true;
    while (!signal.aborted) {
      const waiting = shelf.unproven().filter(({files}) => !stale.has(files));
      for (const holding of waiting) {
        if (shelf.holds(holding) && !signal.aborted) await hashOne(holding);
      }
      if (waiting.length > 0) continue;
      const doubtful = shelf.unchecked(clock.wallMs() - checkEveryMs, files => stale.has(files) || checked.has(files));
      if (doubtful === undefined) break;
      await checkOne(doubtful);
    }
    isRunning = false;
  }

  async function hashOne(holding: Holding): Promise<void> {
    const rest = pacer(provingShare);
    await attempt(holding, (file, index) => {
      const known = holding.hashes[index] ?? cache.get(file)?.sha256;
      if (known !== undefined) return known;
      const goOn = async (count: number): Promise<boolean> => {
        shelf.progress(holding, count);
        await rest();
        return shelf.holds(holding);
      };
      return hashAndKeep(file, {door: holding.door, goOn});
    });
  }

  /** New work goes first: this one is given up for it and begun again. */
  async function checkOne(holding: Holding): Promise<void> {
    const rest = pacer(checkingShare);
    const sinceWallMs = clock.wallMs() - checkEveryMs;
    let isGivenUp = false;
    checked.add(holding.files);
    await attempt(holding, async file => {
      const known = cache.get(file);
      if (known !== undefined && known.checkedWallMs >= sinceWallMs) return known.sha256;
      const goOn = async (): Promise<boolean> => {
        await rest();
        isGivenUp = isNews && shelf.unproven().some(({files}) => !stale.has(files));
        isNews = false;
        return shelf.holds(holding) && !isGivenUp;
      };
      const hash = await hashAndKeep(file, {door: holding.door, goOn});
      if (isGivenUp) checked.delete(holding.files);
      if (hash !== undefined && known !== undefined && known.sha256 !== hash) {
        log('warn', 'the bytes of a model are not what they were, though nobody wrote to it', {
          model: holding.names[0],
        });
      }
      return hash;
    });
  }

  async function hashAndKeep(file: FileStamp, ways: Parameters<typeof hashFile>[1]): Promise<string | undefined> {
    const hash = await hashFile(file, ways, signal);
    if (hash !== undefined) cache.put(file, hash);
    return hash;
  }

  type HashOf = (file: FileStamp, index: number) => Promise<string | undefined> | string | undefined;

  async function attempt(holding: Holding, hashOf: HashOf): Promise<void> {
    try {
      const hashes: string[] = [];
      for (const [index, file] of holding.files.entries()) {
        const hash = await hashOf(file, index);
        if (hash === undefined) {
          if (!checked.has(holding.files)) stale.add(holding.files);
          return;
        }
        hashes.push(hash);
      }
      shelf.prove(holding, hashes);
    } catch (error) {
      if (signal.aborted || !shelf.holds(holding)) return;
      const problem = error instanceof Fault ? error.message : `it cannot be read: ${describeError(error)}`;
      log('warn', 'a model could not be hashed; it is tried again', {model: holding.names[0], problem});
      shelf.describe(holding, {...holding.description, kind: 'unusable', problem, retry: true});
    }
  }

  /** Rests whenever it has worked for a spell, so that work takes no more than its share. */
  function pacer(share: number): () => Promise<void> {
    let startedMs = clock.monotonicMs();
    return async () => {
      const workedMs = clock.monotonicMs() - startedMs;
      if (workedMs < spellMs) return;
      await clock.sleep(workedMs * (1 / share - 1), signal);
      startedMs = clock.monotonicMs();
    };
  }

  return {
    wake: () => {
      isNews = true;
      if (!isRunning) running = hashAll();
    },
    async [Symbol.asyncDispose]() {
      await running;
    },
  };
}
