import {costTerms} from './cost.ts';
import type {Cost, CostTerm} from './cost.ts';
import {isCold} from './rank-order.ts';
import type {Entry, RankOrder} from './rank-order.ts';

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

/** What two entries are compared by. */
export interface Comparing {
  readonly order: RankOrder;
  readonly costFor: (entry: Entry) => Cost | undefined;
}

/** Why it is first, against the runner-up. */
export function whyFirst(first: Entry, runnerUp: Entry | undefined, by: Comparing): string {
  if (runnerUp) return advantage(first, runnerUp, by);
  return isCold(first) ? 'the only candidate' : 'loaded, the only candidate';
}

/** Why it is not first. */
export function whyBehind(entry: Entry, first: Entry | undefined, by: Comparing): string {
  return first ? `behind ${first.name}: ${advantage(first, entry, by)}` : 'equal';
}

/** What speaks for the first of two. */
function advantage(first: Entry, second: Entry, {order, costFor}: Comparing): string {
  if (first.preferred !== second.preferred) return 'preferred';
  if (first.group !== second.group && second.group % 10 === 6) return 'long enough context';
  if (first.group !== second.group && second.group % 10 === 3) return 'no second copy';
  if (first.group !== second.group || (first.group & 1) === 1) {
    const [one, other] = [costFor(first), costFor(second)];
    if (one && other) return termWords[largestDifference(one.terms, other.terms)];
  }
  if (order.hit(first) !== order.hit(second)) return 'has read the prompt before';
  return steps.find(({value}) => value(first) !== value(second))?.words ?? 'equal';
}

function largestDifference(first: Cost['terms'], second: Cost['terms']): CostTerm {
  const gain = (term: CostTerm): number => second[term] - first[term];
  return costTerms.reduce((largest, term) => (gain(term) > gain(largest) ? term : largest));
}

/** The steps in words; each decides alone, and the next is only asked when both sides are equal. */
const steps: readonly {readonly words: string; readonly value: (entry: Entry) => number}[] = [
  {words: 'loaded', value: ({state}) => (state === 'ready' ? 2 : state === 'loading' ? 1 : 0)},
  {words: 'on disk', value: ({state}) => (state === 'absent' ? 0 : 1)},
  {words: 'most room', value: entry => (isCold(entry) ? entry.roomBytes : 0)},
  {words: 'this node', value: ({self}) => (self ? 1 : 0)},
  {words: 'free slots', value: ({freeSlots}) => freeSlots},
  {words: 'shortest queue', value: ({queued}) => -queued},
];
