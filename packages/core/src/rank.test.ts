import test from 'ava';
import fc from 'fast-check';
import {asked, candidate, learned} from '../../../test/support/builders.ts';
import {seedCases} from '../../../test/support/seed-cases.ts';
import type {Candidate} from './candidates.ts';
import {costTerms} from './cost.ts';
import type {Spread} from './cost.ts';
import {rank, toEntry, weigh} from './rank.ts';

/** Names of the nodes that may be asked, best first. */
function order(spread: Spread, ...candidates: readonly Candidate[]): string {
  return rank(candidates, asked({spread}))
    .filter(({place}) => place !== undefined)
    .map(({name}) => name)
    .join(' ');
}

const me = (changes: Partial<Candidate> = {}): Candidate => candidate('S', {self: true, roundTripMs: 0, ...changes});
const spreads = ['off', 'auto'] as const;

for (const {lines, words, candidates, winner} of seedCases) {
  test(`${lines}: ${words}`, t => {
    for (const spread of spreads) t.is(order(spread, ...candidates).split(' ')[0], winner, spread);
  });
}

test('S21: with spread off measured facts change nothing', t => {
  const slow = candidate('A', {state: 'ready', waitMs: 600_000, learned: learned({decodeTps: 0.1})});
  t.is(order('off', slow, me({learned: learned()})), 'A S');
});

test('S72: ready ranks ahead of loading, loading ahead of stored', t => {
  t.is(order('off', me(), candidate('L', {state: 'loading'}), candidate('R', {state: 'ready'})), 'R L S');
});

test('S26: equal peers stand in an order that depends on the request alone, and share the requests', t => {
  const peers = ['A', 'B', 'C'].map(letter => candidate(letter));
  const first = (index: number): string | undefined => rank(peers, asked({request: `request ${index}`}))[0]?.name;
  const firsts = Array.from({length: 60}, (_, index) => first(index));
  t.deepEqual(rank(peers, asked()), rank(peers.toReversed(), asked()));
  for (const {name} of peers) t.true(firsts.filter(found => found === name).length >= 10, `${name} gets its share`);
});

test('S92: a preferred node goes first, whatever its state', t => {
  for (const spread of spreads) {
    t.is(order(spread, me({state: 'ready', learned: learned()}), candidate('P', {preferred: true})), 'P S');
  }
});

test('an excluded node keeps its reason and gets no place and no cost', t => {
  const [, last] = rank([candidate('A', {exclusion: 'artifact', state: 'ready'}), me()], asked());
  t.like(last, {name: 'A', place: undefined, cost: undefined, reason: 'artifact'});
});

test('the reason names the step that decided', t => {
  const reasons = (...candidates: readonly Candidate[]): string[] =>
    rank(candidates, asked({spread: 'off'})).map(({reason}) => reason);
  t.deepEqual(reasons(candidate('A', {state: 'ready'}), me()), ['loaded', 'behind A: loaded']);
  t.is(reasons(candidate('A', {roomBytes: 9e9}), me({roomBytes: 1e9}))[0], 'most room');
  t.is(reasons(me())[0], 'the only candidate');
});

const someFacts = fc.record({
  letter: fc.constantFrom('A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'),
  state: fc.constantFrom<Candidate['state']>('ready', 'loading', 'stored', 'absent'),
  exclusion: fc.constantFrom<Candidate['exclusion']>(undefined, undefined, undefined, 'artifact', 'stale', 'busy'),
  preferred: fc.boolean(),
  self: fc.boolean(),
  roomBytes: fc.constantFrom(0, 1e9, 8e9),
  sizeBytes: fc.constantFrom(1e9, 5e9),
  freeSlots: fc.nat(2),
  busy: fc.nat(4),
  queued: fc.nat(2),
  waitMs: fc.constantFrom(0, 3000, 60_000),
  ageMs: fc.constantFrom(0, 2000),
  ownOffers: fc.nat(3),
  evictSeconds: fc.constantFrom(0, 4),
  failures: fc.nat(3),
  roundTripMs: fc.constantFrom(undefined, 1, 80),
  relayed: fc.boolean(),
  hitBytes: fc.constantFrom(0, 2000),
});
const someLearned = fc.option(
  fc.record({decodeTps: fc.constantFrom(5, 50), prefillTps: fc.constantFrom(50, 1000)}).map(learned),
  {nil: undefined},
);
const unmeasured = someFacts.map(({letter, ...changes}) => candidate(letter, changes));
const measured = fc.tuple(unmeasured, someLearned).map(([facts, found]) => ({...facts, learned: found}));
const several = (one: fc.Arbitrary<Candidate>): fc.Arbitrary<Candidate[]> =>
  fc.uniqueArray(one, {selector: ({node}) => node, maxLength: 8});
const anySpread = fc.constantFrom<Spread>('auto', 'off');

test('ranking does not depend on the order of its input, loses nobody and explains each exactly once', t => {
  fc.assert(
    fc.property(several(measured), fc.string(), anySpread, (candidates, request, spread) => {
      const question = asked({request, spread});
      const ranked = rank(candidates, question);
      t.deepEqual(rank(candidates.toReversed(), question), ranked);
      t.deepEqual(ranked.map(({node}) => node).toSorted(), candidates.map(({node}) => node).toSorted());
      const places = ranked.flatMap(({place}) => place ?? []);
      t.deepEqual(places, [...places.keys()]);
      for (const {place, exclusion, reason, cost} of ranked) {
        t.is(place === undefined, exclusion !== undefined);
        t.true(reason.length > 0);
        if (place !== undefined) t.true(cost !== undefined && costTerms.every(term => cost.terms[term] >= 0));
      }
    }),
  );
});

test('who is asked is the first of the whole order, with the same reason and cost', t => {
  fc.assert(
    fc.property(several(measured), fc.string(), anySpread, (candidates, request, spread) => {
      const {best, ranked} = weigh(candidates.map(toEntry), asked({request, spread}));
      t.deepEqual(
        best,
        ranked.find(({place}) => place === 0),
      );
    }),
  );
});

test('S21: with nothing measured auto is the seed rule, place by place', t => {
  fc.assert(
    fc.property(several(unmeasured), fc.nat(100_000), (candidates, promptBytes) => {
      const places = (spread: Spread): unknown =>
        rank(candidates, asked({spread, promptBytes})).map(({node, place, reason}) => ({node, place, reason}));
      t.deepEqual(places('auto'), places('off'));
    }),
  );
});

/** Each change makes exactly one term of the cost worse. */
const worsenings: readonly (readonly [string, (candidate: Candidate) => Candidate])[] = [
  ['path', one => ({...one, roundTripMs: (one.roundTripMs ?? 0) + 5000, self: false})],
  ['model', one => (one.state === 'stored' ? {...one, hasRoom: false} : one)],
  ['queue', one => (one.state === 'ready' ? {...one, waitMs: one.waitMs + 20_000} : one)],
  ['prefill', one => ({...one, learned: one.learned && {...one.learned, prefillTps: 10}})],
  ['decode', one => ({...one, learned: one.learned && {...one.learned, decodeTps: 1}})],
  ['evict', one => ({...one, evictSeconds: one.evictSeconds + 10})],
  ['policy', one => ({...one, batteryShare: 0.1})],
  ['prefill and decode', one => ({...one, isHot: true})],
  ['risk', one => ({...one, failures: one.failures + 2})],
];

test('a node whose cost grows in any one term never comes further ahead', t => {
  const everyone = several(fc.tuple(unmeasured, someFacts).map(([facts]) => ({...facts, learned: learned()})));
  fc.assert(
    fc.property(everyone, fc.nat(7), fc.constantFrom(...worsenings), (candidates, index, [term, worsen]) => {
      const chosen = candidates[index % Math.max(1, candidates.length)];
      if (!chosen) return;
      const placeOf = (list: readonly Candidate[]): number =>
        rank(list, asked()).find(({node}) => node === chosen.node)?.place ?? Infinity;
      const changed = candidates.map(one => (one === chosen ? worsen(one) : one));
      t.true(placeOf(changed) >= placeOf(candidates), term);
    }),
  );
});
