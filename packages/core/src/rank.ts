import type {Candidate} from './candidates.ts';

/** A candidate with its place and the reason for it, in words. */
export interface Ranked extends Candidate {
  /** 0 is best; undefined when it may not be asked. */
  readonly place: number | undefined;
  readonly reason: string;
}

/**
 * The seed rule: (1) a node that has the model loaded; (2) of those it fits on, one that has it on disk; (3) the one
 * with the most room; ties to itself, then free slots, then a hash of (request, node), so that equal nodes share the
 * work (requirements S20–S29). A preferred node goes first whatever its state. Pure, total and independent of the
 * order of its input.
 */
export function rank(candidates: readonly Candidate[], request: string): readonly Ranked[] {
  const eligible = candidates.filter(({exclusion}) => exclusion === undefined);
  const sorted = eligible.toSorted((a, b) => compare(a, b, request));
  const places = new Map(sorted.map((candidate, index) => [candidate.node, index]));
  const runnerUp = sorted[1];
  return candidates
    .map(candidate => ({
      ...candidate,
      place: places.get(candidate.node),
      reason: candidate.exclusion ?? explain(candidate, candidate === sorted[0] ? runnerUp : sorted[0]),
    }))
    .toSorted((a, b) => (a.place ?? Infinity) - (b.place ?? Infinity) || (a.node < b.node ? -1 : 1));
}

/** Each step decides alone; the next is only asked when both sides are equal. */
const steps: readonly {readonly words: string; readonly value: (candidate: Candidate, request: string) => number}[] = [
  {words: 'preferred', value: ({preferred}) => (preferred ? 1 : 0)},
  {words: 'loaded', value: ({state}) => (state === 'ready' ? 2 : state === 'loading' ? 1 : 0)},
  {words: 'on disk', value: ({state}) => (state === 'absent' ? 0 : 1)},
  {words: 'most room', value: candidate => (isLoaded(candidate) ? 0 : candidate.roomBytes)},
  {words: 'this node', value: ({self}) => (self ? 1 : 0)},
  {words: 'free slots', value: ({freeSlots}) => freeSlots},
  {words: 'shortest queue', value: ({queued}) => -queued},
  {words: 'equal', value: ({node}, request) => hash32(`${request} ${node}`)},
];

function compare(a: Candidate, b: Candidate, request: string): number {
  for (const {value} of steps) {
    const difference = value(b, request) - value(a, request);
    if (difference !== 0) return difference;
  }
  return a.node < b.node ? -1 : 1;
}

/** Why it stands where it stands, against the one it is measured with. */
function explain(candidate: Candidate, other: Candidate | undefined): string {
  if (!other) return isLoaded(candidate) ? 'loaded, the only candidate' : 'the only candidate';
  const step = steps.find(({value}) => value(candidate, '') !== value(other, ''));
  return step?.words ?? 'equal';
}

function isLoaded({state}: Candidate): boolean {
  return state === 'ready' || state === 'loading';
}

/** FNV-1a, 32 bits: spreads equal requests without chance; not for security. */
function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}
