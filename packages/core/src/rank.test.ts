import test from 'ava';
import fc from 'fast-check';
import {candidate} from '../../../test/support/builders.ts';
import type {Candidate} from './candidates.ts';
import {rank} from './rank.ts';

/** Names of the nodes that may be asked, best first. */
function order(...candidates: readonly Candidate[]): string {
  return rank(candidates, 'request')
    .filter(({place}) => place !== undefined)
    .map(({name}) => name)
    .join(' ');
}

const me = (changes: Partial<Candidate> = {}): Candidate => candidate('S', {self: true, roundTripMs: 0, ...changes});

test('S20: a node that has the model loaded wins, even if it is small and far', t => {
  const small = candidate('A', {state: 'ready', roomBytes: 0, roundTripMs: 300});
  t.is(order(me({roomBytes: 128e9}), small, candidate('B', {roomBytes: 64e9})), 'A S B');
});

test('S21: a busy holder stays ahead of an idle node that only has the file', t => {
  const busy = candidate('A', {state: 'ready', freeSlots: 0, queued: 9});
  t.is(order(busy, me({roomBytes: 128e9})), 'A S');
});

test('S72: ready ranks ahead of loading, loading ahead of stored', t => {
  t.is(order(me(), candidate('L', {state: 'loading'}), candidate('R', {state: 'ready'})), 'R L S');
});

test('S22, S23: a smaller node that has the file beats a roomier one without it', t => {
  t.is(order(me({state: 'absent', roomBytes: 128e9}), candidate('A', {roomBytes: 4e9})), 'A S');
});

test('S25: among nodes that have it on disk the one with the most room wins', t => {
  t.is(order(me({roomBytes: 4e9}), candidate('A', {roomBytes: 8e9}), candidate('B', {roomBytes: 6e9})), 'A B S');
});

test('S28: unknown memory counts as no room', t => {
  t.is(order(me({roomBytes: 0}), candidate('A', {roomBytes: 1})), 'A S');
});

test('S26: ties go to itself', t => {
  t.is(order(candidate('A'), me(), candidate('B')).split(' ')[0], 'S');
  t.is(order(candidate('A', {state: 'ready', freeSlots: 4}), me({state: 'ready'})), 'S A');
});

test('S26: equal peers stand in an order that depends on the request alone, and share the requests', t => {
  const peers = ['A', 'B', 'C'].map(letter => candidate(letter));
  const firsts = Array.from({length: 60}, (_, index) => rank(peers, `request ${index}`)[0]?.name);
  t.deepEqual(rank(peers, 'x'), rank(peers.toReversed(), 'x'));
  for (const {name} of peers) t.true(firsts.filter(first => first === name).length >= 10, `${name} gets its share`);
});

test('S92: a preferred node goes first, whatever its state', t => {
  t.is(order(me({state: 'ready'}), candidate('P', {preferred: true})), 'P S');
});

test('an excluded node keeps its reason and gets no place', t => {
  const [, last] = rank([candidate('A', {exclusion: 'artifact', state: 'ready'}), me()], 'request');
  t.like(last, {name: 'A', place: undefined, reason: 'artifact'});
});

test('the reason names the step that decided', t => {
  const reasons = (...candidates: readonly Candidate[]): string[] => rank(candidates, 'r').map(({reason}) => reason);
  t.is(reasons(candidate('A', {state: 'ready'}), me())[0], 'loaded');
  t.is(reasons(candidate('A', {roomBytes: 9e9}), me({roomBytes: 1e9}))[0], 'most room');
  t.is(reasons(me())[0], 'the only candidate');
});

const anyCandidate = fc
  .record({
    letter: fc.constantFrom('A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'),
    state: fc.constantFrom<Candidate['state']>('ready', 'loading', 'stored', 'absent'),
    exclusion: fc.constantFrom<Candidate['exclusion']>(undefined, undefined, 'artifact', 'stale'),
    roomBytes: fc.constantFrom(0, 1e9, 8e9),
    freeSlots: fc.nat(2),
    queued: fc.nat(2),
  })
  .map(({letter, ...changes}) => candidate(letter, changes));

test('ranking does not depend on the order of its input, loses nobody and places exactly the eligible', t => {
  fc.assert(
    fc.property(fc.uniqueArray(anyCandidate, {selector: ({node}) => node}), fc.string(), (candidates, request) => {
      const ranked = rank(candidates, request);
      t.deepEqual(rank(candidates.toReversed(), request), ranked);
      t.is(ranked.length, candidates.length);
      const places = ranked.flatMap(({place}) => place ?? []);
      t.deepEqual(places, [...places.keys()]);
      t.is(places.length, candidates.filter(({exclusion}) => exclusion === undefined).length);
    }),
  );
});
