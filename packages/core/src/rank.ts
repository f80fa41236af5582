import type {Candidate} from './candidates.ts';
import {costOf, referenceOf} from './cost.ts';
import type {Asked, Cost} from './cost.ts';
import {isCold, order} from './rank-order.ts';
import type {Entry} from './rank-order.ts';
import {whyBehind, whyFirst} from './rank-words.ts';

/** A candidate with its place and the reason for it, in words. */
export interface Ranked extends Candidate {
  /** 0 is best; undefined when it may not be asked. */
  readonly place: number | undefined;
  readonly reason: string;
  /** What the request would cost there; undefined when it may not be asked. */
  readonly cost: Cost | undefined;
}

/** Costs closer than this say nothing, so the seed rule decides between them. */
const tieSeconds = 0.03;
const tieShare = 0.03;

/** A token is hardly ever longer: a prompt with more bytes a token than this would not fit for certain. */
const bytesPerTokenMax = 16;

/**
 * Orders the candidates. `auto` goes by cost in seconds; those within a small band of the best are equal, and between
 * equals the seed rule decides: (1) a node that has the model loaded; (2) one that has it on disk; (3) the one with
 * the most room; ties to itself (S20–S29). `off`, and `auto` while nobody has measured anything, is the seed rule
 * alone. A second copy is made only where measured facts say that it pays, and by one node at a time. A preferred
 * node goes first whatever its state (S92). Pure, total and independent of the order of its input; every candidate is
 * in the result, with its reason.
 */
export function rank(candidates: readonly Candidate[], asked: Asked): readonly Ranked[] {
  const reference = referenceOf(candidates);
  const copies = copyRule(candidates, asked);
  const placed: Entry[] = [];
  const out: Entry[] = [];
  for (const candidate of candidates) {
    const {exclusion} = candidate;
    const isAskable = exclusion === undefined;
    const cost = isAskable || exclusion === 'busy' ? costOf(candidate, asked, reference, copies.hasHolder) : undefined;
    const entry: Entry = {candidate, exclusion, cost, seconds: cost?.seconds ?? Infinity, hit: 0, group: 0, hash: 0};
    if (isAskable) placed.push(entry);
    else out.push(entry);
  }
  const left = copies.hasBusyHolder ? withoutNeedlessCopies(placed, out, copies) : placed;
  const goesByCost = asked.spread === 'auto' && copies.isMeasured;
  group(left, {goesByCost, mayCopy: copies.mayCopy || !goesByCost, asked});
  const ordered = order(left);
  out.sort((a, b) => (a.candidate.node < b.candidate.node ? -1 : 1));

  const [best, runnerUp] = ordered;
  const ranked: Ranked[] = [];
  for (const entry of ordered) {
    const reason = entry === best ? whyFirst(entry, runnerUp) : whyBehind(entry, best);
    ranked.push(withPlace(entry, ranked.length, reason));
  }
  for (const entry of out) ranked.push(withPlace(entry, undefined, entry.exclusion ?? 'tried'));
  return ranked;
}

/** A holder that answered busy is waited for, unless another load is allowed and costs less than the wait. */
function withoutNeedlessCopies(placed: readonly Entry[], out: Entry[], {mayCopy}: CopyRule): Entry[] {
  const holderSeconds = busyHolderSeconds(out);
  return placed.filter(entry => {
    const {candidate, seconds} = entry;
    if (!isCold(candidate) || candidate.preferred || (mayCopy && seconds < holderSeconds)) return true;
    entry.exclusion = 'second copy';
    out.push(entry);
    return false;
  });
}

interface CopyRule {
  readonly isMeasured: boolean;
  /** Somebody has the model loaded or is loading it, so that any other load is a second copy. */
  readonly hasHolder: boolean;
  readonly hasBusyHolder: boolean;
  readonly mayCopy: boolean;
}

/** A second copy needs measurements of every holder, and nobody who is loading one already. */
function copyRule(candidates: readonly Candidate[], {spread}: Asked): CopyRule {
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
function busyHolderSeconds(out: readonly Entry[]): number {
  let least = Infinity;
  for (const {exclusion, candidate, seconds} of out) {
    if (exclusion === 'busy' && !isCold(candidate) && seconds < least) least = seconds;
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
  const isHeld = ({candidate}: Entry): boolean => !mayCopy && isCold(candidate) && !candidate.preferred;
  const requestHash = hash32(asked.request, hashStart);
  let bestPreferred = Infinity;
  let bestOther = Infinity;
  for (const entry of entries) {
    if (entry.candidate.preferred) bestPreferred = Math.min(bestPreferred, entry.seconds);
    else if (!isHeld(entry)) bestOther = Math.min(bestOther, entry.seconds);
  }
  for (const entry of entries) {
    const {preferred, node, hitBytes} = entry.candidate;
    const best = preferred ? bestPreferred : bestOther;
    const isEqual = !goesByCost || entry.seconds <= best + Math.max(tieSeconds, tieShare * best);
    const step = isTooShort(entry.candidate, asked) ? 6 : isHeld(entry) ? 3 : isEqual ? 0 : 1;
    entry.group = (preferred ? 0 : 10) + step;
    entry.hit = goesByCost ? hitBytes : 0;
    entry.hash = hash32(node.slice(-hashedCharacters), requestHash);
  }
}

function isTooShort({contextTokens}: Candidate, {promptBytes}: Asked): boolean {
  return contextTokens !== undefined && promptBytes > contextTokens * bytesPerTokenMax;
}

/** Copied field by field: for objects of this size a spread takes ten times as long. */
function withPlace({candidate: c, exclusion, cost}: Entry, place: number | undefined, reason: string): Ranked {
  return {
    node: c.node,
    name: c.name,
    self: c.self,
    exclusion,
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
    learned: c.learned,
    likely: c.likely,
    hitBytes: c.hitBytes,
    missingBytes: c.missingBytes,
    place,
    reason,
    cost,
  };
}

/** Node ids begin alike and differ at their end. */
const hashedCharacters = 12;
const hashStart = 0x811c9dc5;

/** FNV-1a, 32 bits: spreads equal requests without chance; not for security. */
function hash32(text: string, start: number): number {
  let hash = start;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}
