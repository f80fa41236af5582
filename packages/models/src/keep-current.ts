import {describeError} from '@hearsay/core';
import type {Environment} from '@hearsay/core';
import {compareStamps} from './collect-files.ts';
import type {Collection, PlaceFiles} from './collect-files.ts';
import {describeFiles} from './describe-files.ts';
import type {Holding} from './list-models.ts';
import type {Shelf} from './shelf.ts';
import {stampSorter} from './sort-stamps.ts';
import type {SortedStamps} from './sort-stamps.ts';
import {watchFolders} from './watch-folders.ts';

/**
 * Stamps are compared so often where nothing tells us of changes: a deleted model is out of routing within 2 s (S74).
 */
const pollMs = 500;

/**
 * What a watch tells of is compared so often all the same: a folder above may have been moved, or a drive mounted over
 * it. Where nothing has been yet, something may come.
 */
const toldPollMs = 2000;

/** A timer may go off so much before its time; that is no reason for another one. */
const timerEarlyMs = 5;

/** For each of them, so that large stores cost no more at rest than small ones. */
const toldPollMsEach = 25;

/** Comparing stamps may take this share of the time; slow network disks are polled less often. */
const pollShareMax = 0.1;

/** Pause and look together, where nothing is watched, are over in time for those two seconds. */
const unwatchedPauseMsMax = 1200;

/** After an event: the other events of the same copy or deletion come within this time and are seen in one look. */
const gatherMs = 100;

/** Whatever the stamps say, everything is listed anew so often; a large store that tells of its changes more rarely. */
const rescanMs = 15_000;
const toldRescanMsEach = 250;
const toldRescanMsMax = 60_000;

/** A start waits so long for the first look; ten thousand files on a network disk go on in the background. */
const startWaitMs = 5000;

/** Headers read at once: mostly waiting for the disk. */
const headersAtOnce = 4;

export interface KeeperWays {
  readonly collect: (signal: AbortSignal) => Promise<Collection>;
  /** Whether models of an architecture can be run here. */
  readonly knows: (architecture: string) => Promise<boolean>;
  readonly onLooked: () => void;
}

/** Keeps the shelf true to the disk until disposed. */
export interface Keeper extends AsyncDisposable {
  /** Resolves after the first look, or when it takes too long to wait for. */
  readonly ready: Promise<void>;
}

export function startKeeper(shelf: Shelf, {collect, knows, onLooked}: KeeperWays, {clock, log}: Environment): Keeper {
  const closing = new AbortController();
  const {signal} = closing;
  const watch = watchFolders(noteEvent, log);
  const sorter = stampSorter(watch);
  let places: readonly PlaceFiles[] = [];
  let stamps: SortedStamps = {told: [], untold: []};
  let lookedAtMs = -Infinity;
  let toldAtMs = -Infinity;
  let lookingMs = 0;
  let comparingMs = 0;
  let hasEvent = false;
  let wake: (() => void) | undefined;
  const first = Promise.withResolvers<void>();

  function noteEvent(): void {
    if (hasEvent) return;
    hasEvent = true;
    wake?.();
  }

  async function look(): Promise<void> {
    hasEvent = false;
    lookedAtMs = clock.monotonicMs();
    const found = await collect(signal);
    await clock.sleep(0, signal); // ten thousand files take a while to group and to compare: not in one turn
    places = found.places;
    sorter.watch(places);
    shelf.reconcile(found.groups, clock.monotonicMs());
    const waiting = shelf.undescribed().values();
    await Promise.all(Array.from({length: headersAtOnce}, () => describeEach(waiting)));
    onLooked();
    lookingMs = clock.monotonicMs() - lookedAtMs;
  }

  /** Several of these share one iterator; each takes the next model when it is done with one. */
  async function describeEach(waiting: Iterator<Holding> & Iterable<Holding>): Promise<void> {
    for (const holding of waiting) {
      signal.throwIfAborted();
      shelf.describe(holding, await describeFiles(holding, knows, signal));
    }
  }

  async function isLookDue(): Promise<boolean> {
    const startMs = clock.monotonicMs();
    if (hasEvent || shelf.isUnsettled() || startMs >= rescanDueMs()) return true;
    const {moved, hung} = await compareStamps(stamps.untold, signal);
    if (!hung) comparingMs = clock.monotonicMs() - startMs;
    if (moved || startMs + timerEarlyMs < toldDueMs()) return moved;
    toldAtMs = clock.monotonicMs();
    return (await compareStamps(stamps.told, signal)).moved;
  }

  /** Resolves after the time, at the first event, or when closing. */
  function pause(ms: number): Promise<void> {
    return new Promise(done => {
      const timer = clock.after(ms, done);
      wake = () => {
        timer[Symbol.dispose]();
        done();
      };
      if (signal.aborted) wake();
    });
  }

  function isAllTold(): boolean {
    return countOf(stamps.untold) === 0;
  }

  function rescanDueMs(): number {
    const eachMs = isAllTold() ? countOf(stamps.told) * toldRescanMsEach : 0;
    return lookedAtMs + Math.min(toldRescanMsMax, Math.max(rescanMs, eachMs));
  }

  /** Soon after a look: what happened between it and the beginning of the watch, neither has seen. */
  function toldDueMs(): number {
    if (toldAtMs < lookedAtMs) return lookedAtMs + pollMs;
    return Math.min(toldAtMs + Math.max(toldPollMs, countOf(stamps.told) * toldPollMsEach), rescanDueMs());
  }

  /** What is watched tells of itself; for all else the poll is the only way to see that something is gone. */
  function pollPauseMs(): number {
    if (isAllTold() && !shelf.isUnsettled()) return toldDueMs() - clock.monotonicMs();
    const pauseMs = Math.max(pollMs, comparingMs / pollShareMax);
    return watch.seesAll() ? pauseMs : Math.min(pauseMs, Math.max(pollMs, unwatchedPauseMsMax - comparingMs));
  }

  async function keepLooking(): Promise<void> {
    while (!signal.aborted) {
      try {
        await look();
        first.resolve();
        stamps = await sorter.sort(places, signal);
      } catch (error) {
        if (signal.aborted) break;
        log('error', 'looking for models failed; it is tried again', {error: describeError(error)});
      }
      first.resolve();
      do {
        if (!hasEvent) await pause(pollPauseMs());
        // A second event does not wake, so that a file which is being written is not looked at for every write.
        if (hasEvent) await pause(Math.max(gatherMs, lookingMs));
      } while (!signal.aborted && !(await isLookDue()));
    }
  }

  async function firstLook(): Promise<void> {
    using _ = clock.after(startWaitMs, first.resolve);
    await first.promise;
  }

  const keeping = keepLooking();
  return {
    ready: firstLook(),
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('the model store is closing'));
      wake?.();
      watch[Symbol.dispose]();
      await keeping;
    },
  };
}

function countOf(places: SortedStamps['told']): number {
  return places.reduce((count, {stamps}) => count + stamps.length, 0);
}
