import type {Candidate} from './candidates.ts';
import {costOf, referenceOf, secondsOf} from './cost.ts';
import type {Asked, Cost} from './cost.ts';
import {isAskable, isCold, RankOrder} from './rank-order.ts';
import type {Entry} from './rank-order.ts';
import {whyBehind, whyFirst} from './rank-words.ts';
import type {Comparing} from './rank-words.ts';

/** A candidate with its place and the reason for it, in words. */
export interface Ranked extends Candidate {
  /** 0 is best; undefined when it may not be asked. */
  readonly place: number | undefined;
  readonly reason: string;
  /** What the request would cost there; undefined when it may not be asked. */
  readonly cost: Cost | undefined;
}

/** Whom to ask, and why: the explanation is made when it is first asked for, for the journal after the request. */
export interface Decision {
  /** Undefined: nobody may be asked. */
  readonly best: Ranked | undefined;
  /** Every candidate, best first, those that may not be asked last. */
  readonly ranked: readonly Ranked[];
}

/** Costs closer than this say nothing, so the seed rule decides between them. */
const tieSeconds = 0.03;
const tieShare = 0.03;

/** A token is hardly ever longer: a prompt with more bytes a token than this would not fit for certain. */
export const bytesPerTokenMax = 16;

/** Pure: every candidate in the order of `weigh`, each with its reason. */
export function rank(candidates: readonly Candidate[], asked: Asked): readonly Ranked[] {
  return weigh(candidates.map(toEntry), asked).ranked;
}

/** A candidate that nobody has weighed yet. */
export function toEntry(candidate: Candidate): Entry {
  return {...asData(candidate), seconds: Infinity, group: 0};
}

/**
 * Orders the candidates. `auto` goes by cost in seconds; those within a small band of the best are equal, and between
 * equals the seed rule decides: (1) a node that has the model loaded; (2) one that has it on disk; (3) the one with
 * the most room; ties to itself (S20–S29). `off`, and `auto` while nobody has measured anything, is the seed rule
 * alone. A second copy is made only where measured facts say that it pays, and by one node at a time. A preferred
 * node goes first whatever its state (S92). Pure, total and independent of the order of its input; every candidate is
 * in the result, with its reason. The entries belong to it from here on.
 */
export function weigh(candidates: readonly Entry[], asked: Asked): Decision {
  const reference = referenceOf(candidates);
  const copies = copyRule(candidates, asked);
  const {hasHolder} = copies;
  for (const candidate of candidates) {
    const {exclusion} = candidate;
    if (exclusion !== undefined && exclusion !== 'busy') continue;
    candidate.seconds = secondsOf(candidate, asked, reference, hasHolder);
  }
  if (copies.hasBusyHolder) excludeNeedlessCopies(candidates, copies);
  const goesByCost = asked.spread === 'auto' && copies.isMeasured;
  group(candidates, {goesByCost, mayCopy: copies.mayCopy || !goesByCost, asked});
  const costFor = (entry: Entry): Cost | undefined =>
    entry.seconds === Infinity ? undefined : costOf(entry, asked, reference, hasHolder);
  return new Weighed({candidates, order: new RankOrder(asked.request, goesByCost), costFor});
}

interface Weighing extends Comparing {
  /** One list for all: lists of a thousand nodes for each request are much for the collector. */
  readonly candidates: readonly Entry[];
}

class Weighed implements Decision {
  readonly best: Ranked | undefined;
  readonly #weighing: Weighing;
  #ranked: readonly Ranked[] | undefined;

  constructor(weighing: Weighing) {
    this.#weighing = weighing;
    const [first, runnerUp] = weighing.order.firstTwo(weighing.candidates);
    this.best = first && withPlace(first, 0, whyFirst(first, runnerUp, weighing), weighing.costFor(first));
  }

  get ranked(): readonly Ranked[] {
    this.#ranked ??= explainAll(this.#weighing);
    return this.#ranked;
  }
}

function explainAll(weighing: Weighing): readonly Ranked[] {
  const {candidates, costFor, order} = weighing;
  const ordered = order.all(candidates.filter(isAskable));
  const [first, runnerUp] = ordered;
  const last = candidates.filter(entry => !isAskable(entry)).toSorted((a, b) => (a.node < b.node ? -1 : 1));
  return [
    ...ordered.map((entry, place) => {
      const reason = entry === first ? whyFirst(entry, runnerUp, weighing) : whyBehind(entry, first, weighing);
      return withPlace(entry, place, reason, costFor(entry));
    }),
    ...last.map(entry => withPlace(entry, undefined, entry.exclusion ?? 'tried', costFor(entry))),
  ];
}

/** A holder that answered busy is waited for, unless another load is allowed and costs less than the wait. */
function excludeNeedlessCopies(candidates: readonly Entry[], {mayCopy}: CopyRule): void {
  const holderSeconds = busyHolderSeconds(candidates);
  for (const entry of candidates) {
    const pays = mayCopy && entry.seconds < holderSeconds;
    if (isAskable(entry) && isCold(entry) && !entry.preferred && !pays) entry.exclusion = 'second copy';
  }
}

interface CopyRule {
  readonly isMeasured: boolean;
  /** Somebody has the model loaded or is loading it, so that any other load is a second copy. */
  readonly hasHolder: boolean;
  readonly hasBusyHolder: boolean;
  readonly mayCopy: boolean;
}

/** A second copy needs measurements of every holder, and nobody who is loading one already. */
function copyRule(candidates: readonly Entry[], {spread}: Asked): CopyRule {
  let isMeasured = false;
  let hasHolder = false;
  let hasBusyHolder = false;
  let mayCopy = spread === 'auto';
  for (const candidate of candidates) {
    const {exclusion, learned, state} = candidate;
    if (exclusion !== undefined && exclusion !== 'busy') continue;
    if (learned !== undefined) isMeasured = true;
    if (isCold(candidate)) continue;
    hasHolder = true;
    if (exclusion === 'busy') hasBusyHolder = true;
    if (state === 'loading' || learned === undefined) mayCopy = false;
  }
  return {isMeasured, hasHolder, hasBusyHolder, mayCopy: mayCopy || !hasHolder};
}

/** The least that one of the holders which answered busy would cost, by its newest record. */
function busyHolderSeconds(candidates: readonly Entry[]): number {
  let least = Infinity;
  for (const {exclusion, seconds, state} of candidates) {
    if (exclusion === 'busy' && !isCold({state}) && seconds < least) least = seconds;
  }
  return least;
}

interface Grouping {
  readonly goesByCost: boolean;
  readonly mayCopy: boolean;
  readonly asked: Asked;
}

/** Preferred before others; inside: the best by cost and its equals, the rest by cost, held copies, too short ones. */
function group(entries: readonly Entry[], {goesByCost, mayCopy, asked}: Grouping): void {
  const isHeld = (entry: Entry): boolean => !mayCopy && isCold(entry) && !entry.preferred;
  let bestPreferred = Infinity;
  let bestOther = Infinity;
  for (const entry of entries) {
    if (!isAskable(entry)) continue;
    if (entry.preferred) bestPreferred = Math.min(bestPreferred, entry.seconds);
    else if (!isHeld(entry)) bestOther = Math.min(bestOther, entry.seconds);
  }
  for (const entry of entries) {
    if (!isAskable(entry)) continue;
    const {preferred} = entry;
    const best = preferred ? bestPreferred : bestOther;
    const isEqual = !goesByCost || entry.seconds <= best + Math.max(tieSeconds, tieShare * best);
    const step = isTooShort(entry, asked) ? 6 : isHeld(entry) ? 3 : isEqual ? 0 : 1;
    entry.group = (preferred ? 0 : 10) + step;
  }
}

function isTooShort({contextTokens}: Entry, {promptBytes}: Asked): boolean {
  return contextTokens !== undefined && promptBytes > contextTokens * bytesPerTokenMax;
}

/** The candidate as it was, with its place. */
function withPlace(entry: Entry, place: number | undefined, reason: string, cost: Cost | undefined): Ranked {
  return {...asData(entry), place, reason, cost};
}

/** Plain data that a journal can keep; field by field, because a candidate may look its facts up elsewhere. */
function asData(c: Candidate): Candidate {
  return {
    node: c.node,
    name: c.name,
    self: c.self,
    exclusion: c.exclusion,
    digest: c.digest,
    state: c.state,
    preferred: c.preferred,
    ageMs: c.ageMs,
    slots: c.slots,
    busy: c.busy,
    freeSlots: c.freeSlots,
    queued: c.queued,
    waitMs: c.waitMs,
    running: c.running,
    ownOffers: c.ownOffers,
    sizeBytes: c.sizeBytes,
    contextTokens: c.contextTokens,
    roomBytes: c.roomBytes,
    hasRoom: c.hasRoom,
    evictSeconds: c.evictSeconds,
    roundTripMs: c.roundTripMs,
    relayed: c.relayed,
    failures: c.failures,
    batteryShare: c.batteryShare,
    isHot: c.isHot,
    learned: c.learned,
    likely: c.likely,
    guess: c.guess,
    hitBytes: c.hitBytes,
    missingBytes: c.missingBytes,
  };
}
