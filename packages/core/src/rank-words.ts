import type {Cost, CostTerm} from './cost.ts';
import {isCold} from './rank-order.ts';
import type {Entry} from './rank-order.ts';

/** What each term is called when it decides for somebody. */
const termWords: Readonly<Record<CostTerm, string>> = {
  path: 'nearer',
  model: 'sooner loaded',
  queue: 'shorter wait',
  prefill: 'reads the prompt sooner',
  decode: 'writes faster',
  evict: 'nothing to unload',
  copy: 'no second copy',
  policy: 'spared less',
  risk: 'failed less',
};

/** Why it is first, against the runner-up. */
export function whyFirst(first: Entry, runnerUp: Entry | undefined): string {
  if (runnerUp) return advantage(first, runnerUp);
  return isCold(first.candidate) ? 'the only candidate' : 'loaded, the only candidate';
}

/** Why it is not first. */
export function whyBehind(entry: Entry, first: Entry | undefined): string {
  return first ? `behind ${first.candidate.name}: ${advantage(first, entry)}` : 'equal';
}

/** What speaks for the first of two. */
function advantage(first: Entry, second: Entry): string {
  if (first.candidate.preferred !== second.candidate.preferred) return 'preferred';
  if (first.group !== second.group && second.group % 10 === 6) return 'long enough context';
  if (first.group !== second.group && second.group % 10 === 3) return 'no second copy';
  if ((first.group !== second.group || (first.group & 1) === 1) && first.cost && second.cost) {
    return termWords[largestDifference(first.cost.terms, second.cost.terms)];
  }
  return steps.find(({value}) => value(first) !== value(second))?.words ?? 'equal';
}

/** Written out, because it is done for every candidate of every request. */
function largestDifference(first: Cost['terms'], second: Cost['terms']): CostTerm {
  let largest: CostTerm = 'path';
  let gain = second.path - first.path;
  let next = second.model - first.model;
  if (next > gain) {
    largest = 'model';
    gain = next;
  }
  next = second.queue - first.queue;
  if (next > gain) {
    largest = 'queue';
    gain = next;
  }
  next = second.prefill - first.prefill;
  if (next > gain) {
    largest = 'prefill';
    gain = next;
  }
  next = second.decode - first.decode;
  if (next > gain) {
    largest = 'decode';
    gain = next;
  }
  next = second.evict - first.evict;
  if (next > gain) {
    largest = 'evict';
    gain = next;
  }
  next = second.copy - first.copy;
  if (next > gain) {
    largest = 'copy';
    gain = next;
  }
  next = second.policy - first.policy;
  if (next > gain) {
    largest = 'policy';
    gain = next;
  }
  next = second.risk - first.risk;
  if (next > gain) {
    largest = 'risk';
    gain = next;
  }
  return largest;
}

/** The steps in words; each decides alone, and the next is only asked when both sides are equal. */
const steps: readonly {readonly words: string; readonly value: (entry: Entry) => number}[] = [
  {words: 'has read the prompt before', value: ({hit}) => hit},
  {words: 'loaded', value: ({candidate: {state}}) => (state === 'ready' ? 2 : state === 'loading' ? 1 : 0)},
  {words: 'on disk', value: ({candidate: {state}}) => (state === 'absent' ? 0 : 1)},
  {words: 'most room', value: ({candidate}) => (isCold(candidate) ? candidate.roomBytes : 0)},
  {words: 'this node', value: ({candidate}) => (candidate.self ? 1 : 0)},
  {words: 'free slots', value: ({candidate}) => candidate.freeSlots},
  {words: 'shortest queue', value: ({candidate}) => -candidate.queued},
];
