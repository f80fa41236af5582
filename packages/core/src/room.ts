/** Which engines go when another model needs their memory, and how large that one may be. */
import {fullSize, sizeEngine} from './fit.ts';
import type {EngineSize, SizeWish} from './fit.ts';

/** An engine that takes memory now. */
export interface Resident {
  readonly key: string;
  /** What is free again when it is gone. */
  readonly needBytes: number;
  /** False: it works, loads, is lent to somebody who has not asked yet, or its owner keeps it. It does not go now. */
  readonly mayGo: boolean;
  /** Its owner keeps it, so that nobody can wait for its memory. */
  readonly isKept: boolean;
  /** See `worthOf`; the least goes first. */
  readonly worth: number;
}

/** How a model has been used on this machine. */
export interface UseCount {
  /** Requests, of which old ones count less: see `countUse`. */
  readonly uses: number;
  readonly lastUsedMs: number;
}

/** A request counts half after this time: what was busy this morning says little about the evening. */
const usesHalvedAfterMs = 10 * 60_000;

/** Loads that are quicker than this are all alike to those who wait; their differences are chance. */
const loadMsLeast = 2_000;

/** Pure: the usage after one more request. */
export function countUse(usage: UseCount | undefined, nowMs: number): UseCount {
  return {uses: usesNow(usage, nowMs) + 1, lastUsedMs: nowMs};
}

/** Pure: what is lost when an engine goes: the time of the next load, times how likely that is soon. */
export function worthOf(usage: UseCount | undefined, loadMs: number, nowMs: number): number {
  return Math.max(loadMsLeast, loadMs) * usesNow(usage, nowMs);
}

function usesNow(usage: UseCount | undefined, nowMs: number): number {
  if (usage === undefined) return 0;
  return usage.uses * 0.5 ** (Math.max(0, nowMs - usage.lastUsedMs) / usesHalvedAfterMs);
}

/**
 * Pure: the engines that have to go so that so much fits, the least worth first, and none that could have stayed.
 * Undefined when it would not fit even then: then nothing goes.
 */
export function makeRoom(
  wantedBytes: number,
  freeBytes: number,
  residents: readonly Resident[],
): readonly string[] | undefined {
  const inOrder = residents
    .filter(({mayGo}) => mayGo)
    .toSorted((a, b) => a.worth - b.worth || (a.key < b.key ? -1 : 1));
  let free = freeBytes;
  const going: Resident[] = [];
  for (const resident of inOrder) {
    if (free >= wantedBytes) break;
    going.push(resident);
    free += resident.needBytes;
  }
  if (free < wantedBytes) return undefined;
  for (const resident of going.toReversed()) {
    if (free - resident.needBytes < wantedBytes) continue;
    free -= resident.needBytes;
    going.splice(going.indexOf(resident), 1);
  }
  return going.map(({key}) => key);
}

/** A model that shall be started, and the memory that there is. */
export interface StartQuestion {
  readonly wish: SizeWish;
  readonly contextTrained: number;
  readonly needBytes: (size: EngineSize) => number;
  /** Less than nothing when more was promised than there is. */
  readonly freeBytes: number;
  /** All other engines. */
  readonly residents: readonly Resident[];
}

export type StartPlan =
  | {readonly kind: 'start'; readonly size: EngineSize; readonly evict: readonly string[]}
  /** It will fit when what works now has ended. */
  | {readonly kind: 'wait'}
  /** It does not fit even when all is gone that is not kept. */
  | {readonly kind: 'never'};

/** With less context than this for a slot, waiting for more is better than loading. */
const contextCramped = 8192;

/** Pure: how a model can be started, and what must go for it. */
export function planStart({wish, contextTrained, needBytes, freeBytes, residents}: StartQuestion): StartPlan {
  const largest = (room: number): EngineSize | undefined =>
    sizeEngine(wish, contextTrained, size => needBytes(size) <= room);
  const start = (size: EngineSize): StartPlan => ({
    kind: 'start',
    size,
    evict: makeRoom(needBytes(size), freeBytes, residents) ?? [],
  });
  const full = fullSize(wish, contextTrained);
  const beside = largest(freeBytes);
  // Half the slots beside what is loaded are better than all of them without it.
  if (beside !== undefined && beside.slots * 2 >= full.slots && !isCramped(beside, full)) return start(beside);
  const best = largest(freeBytes + sumNeeds(residents.filter(({isKept}) => !isKept)));
  if (best === undefined) return {kind: 'never'};
  const possible = largest(freeBytes + sumNeeds(residents.filter(({mayGo}) => mayGo)));
  return possible === undefined || isCramped(possible, best) ? {kind: 'wait'} : start(possible);
}

/** Even a little context is better than waiting, but only if more will never come. */
function isCramped(size: EngineSize, best: EngineSize): boolean {
  return size.context < Math.min(best.context, contextCramped);
}

function sumNeeds(residents: readonly Resident[]): number {
  return residents.reduce((total, {needBytes}) => total + needBytes, 0);
}
