import type {Candidate, Exclusion} from './candidates.ts';
import type {Cost} from './cost.ts';

/** A candidate while it is being ranked. Internal to `rank`. */
export interface Entry {
  readonly candidate: Candidate;
  exclusion: Exclusion | undefined;
  readonly cost: Cost | undefined;
  readonly seconds: number;
  /** Lower goes first. Even: the seed rule decides inside; odd: the cost. */
  group: number;
  /** What counts of its known prompt. */
  hit: number;
  hash: number;
}

/** Costs are compared in whole microseconds; so many nodes fit beside them into one exact number. */
const nodesMax = 4096;

/**
 * By group; inside by cost or by the steps. Costs are sorted as plain numbers with the index in their last digits,
 * because a comparison of two objects takes longer than all the rest of ranking.
 */
export function order(entries: readonly Entry[]): readonly Entry[] {
  const groups = new Map<number, Entry[]>();
  for (const entry of entries) {
    const members = groups.get(entry.group);
    if (members) members.push(entry);
    else groups.set(entry.group, [entry]);
  }
  const ordered: Entry[] = [];
  for (const [number, members] of [...groups].toSorted(([a], [b]) => a - b)) {
    const isByCost = (number & 1) === 1 && members.length <= nodesMax;
    for (const entry of isByCost ? byCost(members) : members.toSorted(compareBySteps)) ordered.push(entry);
  }
  return ordered;
}

function byCost(members: readonly Entry[]): readonly Entry[] {
  const keys = new Float64Array(members.length);
  for (const [index, {seconds}] of members.entries()) keys[index] = micros(seconds) * nodesMax + index;
  keys.sort();
  const sorted: Entry[] = [];
  let run: Entry[] = [];
  let runMicros = -1;
  for (const key of keys) {
    const cost = Math.floor(key / nodesMax);
    const entry = members[key - cost * nodesMax];
    if (!entry) continue;
    if (cost !== runMicros && run.length > 0) {
      sorted.push(...(run.length > 1 ? run.toSorted(compareBySteps) : run));
      run = [];
    }
    runMicros = cost;
    run.push(entry);
  }
  sorted.push(...run.toSorted(compareBySteps));
  return sorted;
}

/** At most some weeks, so that the number stays exact with the index behind it. */
function micros(seconds: number): number {
  return Math.min(2e12, Math.round(seconds * 1e6));
}

/** The steps, written out for speed; then by lot, which is the same on every node; then by id. */
function compareBySteps(a: Entry, b: Entry): number {
  const one = a.candidate;
  const other = b.candidate;
  const oneCold = isCold(one);
  const otherCold = isCold(other);
  return (
    b.hit - a.hit ||
    stateRank(other.state) - stateRank(one.state) ||
    (oneCold && otherCold ? other.roomBytes - one.roomBytes : 0) ||
    Number(other.self) - Number(one.self) ||
    other.freeSlots - one.freeSlots ||
    one.queued - other.queued ||
    b.hash - a.hash ||
    (one.node < other.node ? -1 : 1)
  );
}

function stateRank(state: Candidate['state']): number {
  switch (state) {
    case 'ready':
      return 3;
    case 'loading':
      return 2;
    case 'stored':
      return 1;
    case 'absent':
      return 0;
  }
}

/** It would have to be loaded first. */
export function isCold({state}: Candidate): boolean {
  return state === 'stored' || state === 'absent';
}
