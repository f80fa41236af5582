import type {Candidate, Exclusion} from './candidates.ts';

/** A candidate while it is being ranked. One object a node: a second one would double the work of the collector. */
export interface Entry extends Omit<Candidate, 'exclusion'> {
  exclusion: Exclusion | undefined;
  /** Infinity: it may not be asked. */
  seconds: number;
  /** Lower goes first. Even: the seed rule decides inside; odd: the cost. */
  group: number;
}

/** Costs are compared in whole microseconds, so that what is equal but for rounding is equal. */
function micros(seconds: number): number {
  return Math.round(seconds * 1e6);
}

/** The order for one request: total, and the same whatever the order of the entries. */
export class RankOrder {
  readonly #requestHash: number;
  readonly #goesByCost: boolean;

  constructor(request: string, goesByCost: boolean) {
    this.#requestHash = hash32(request, 0, hashStart);
    this.#goesByCost = goesByCost;
  }

  /** What counts of its known prompt. */
  hit({hitBytes}: Entry): number {
    return this.#goesByCost ? hitBytes : 0;
  }

  /** Of those that may be asked, without sorting the others: only these two matter for the choice and its reason. */
  firstTwo(entries: readonly Entry[]): readonly [Entry | undefined, Entry | undefined] {
    let first: Entry | undefined;
    let second: Entry | undefined;
    for (const entry of entries) {
      if (!isAskable(entry)) continue;
      if (first === undefined || this.compare(entry, first) < 0) {
        second = first;
        first = entry;
      } else if (second === undefined || this.compare(entry, second) < 0) {
        second = entry;
      }
    }
    return [first, second];
  }

  all(entries: readonly Entry[]): readonly Entry[] {
    return entries.toSorted((a, b) => this.compare(a, b));
  }

  /** By group; inside by cost or by the steps; then by lot, which is the same on every node; then by id. */
  compare(a: Entry, b: Entry): number {
    if (a.group !== b.group) return a.group - b.group;
    const byCost = (a.group & 1) === 1 ? micros(a.seconds) - micros(b.seconds) : 0;
    if (byCost !== 0) return byCost;
    return (
      this.hit(b) - this.hit(a) ||
      stateRank(b.state) - stateRank(a.state) ||
      (isCold(a) && isCold(b) ? b.roomBytes - a.roomBytes : 0) ||
      Number(b.self) - Number(a.self) ||
      b.freeSlots - a.freeSlots ||
      a.queued - b.queued ||
      this.#lot(b) - this.#lot(a) ||
      (a.node < b.node ? -1 : 1)
    );
  }

  #lot({node}: Entry): number {
    return hash32(node, Math.max(0, node.length - hashedCharacters), this.#requestHash);
  }
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

/** Nothing speaks against it. */
export function isAskable({exclusion}: Pick<Entry, 'exclusion'>): boolean {
  return exclusion === undefined;
}

/** It would have to be loaded first. */
export function isCold({state}: Pick<Candidate, 'state'>): boolean {
  return state === 'stored' || state === 'absent';
}

/** Node ids begin alike and differ at their end. */
const hashedCharacters = 12;
const hashStart = 0x811c9dc5;

/** FNV-1a, 32 bits: spreads equal requests without chance; not for security. */
function hash32(text: string, from: number, start: number): number {
  let hash = start;
  for (let index = from; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}
