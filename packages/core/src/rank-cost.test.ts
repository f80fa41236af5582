import test from 'ava';
import {asked, candidate, learned} from '../../../test/support/builders.ts';
import type {Candidate} from './candidates.ts';
import type {Asked} from './cost.ts';
import {rank} from './rank.ts';
import type {Ranked} from './rank.ts';

function ranked(candidates: readonly Candidate[], changes: Partial<Asked> = {}): readonly Ranked[] {
  return rank(candidates, asked(changes));
}

/** Names of the nodes that may be asked, best first. */
function order(candidates: readonly Candidate[], changes: Partial<Asked> = {}): string {
  const placed = ranked(candidates, changes).filter(({place}) => place !== undefined);
  return placed.map(({name}) => name).join(' ');
}

const me = (changes: Partial<Candidate> = {}): Candidate => candidate('S', {self: true, roundTripMs: 0, ...changes});
const holder = (changes: Partial<Candidate> = {}): Candidate =>
  candidate('H', {state: 'ready', learned: learned(), ...changes});
const full = {busy: 4, running: 4, freeSlots: 0} as const;

test('S21: an idle holder keeps its model to itself', t => {
  const [first] = ranked([me(), holder({freeSlots: 4})]);
  t.like(first, {name: 'H', reason: 'sooner loaded'});
});

test('S21: a second copy is made when the measured wait is longer than load, eviction price and margin', t => {
  const cold = me({learned: learned({loadMs: 4000}), evictSeconds: 2});
  // 4 s of load, 2 s of eviction, 0.5 s of margin; both would read and write equally fast.
  const wait = (waitMs: number): string => order([cold, holder({waitMs, freeSlots: 0})]);
  t.is(wait(6200), 'H S');
  t.is(wait(7000), 'S H');
});

test('a slow holder gives way to a fast node even without a queue', t => {
  const slow = holder({learned: learned({prefillTps: 20, decodeTps: 20}), freeSlots: 4});
  const [first] = ranked([slow, candidate('F', {learned: learned({prefillTps: 4000, decodeTps: 100})})]);
  t.like(first, {name: 'F', reason: 'reads the prompt sooner'});
});

test('no second copy while a holder has measured nothing, however long it lets wait', t => {
  const unknown = holder({learned: undefined, waitMs: 600_000});
  t.is(order([me({learned: learned()}), unknown]), 'H S');
});

test('one loader at a time: while a node loads the model no other begins to', t => {
  const loader = candidate('L', {state: 'loading', waitMs: 30_000, learned: learned()});
  const busy = holder({...full, queued: 20, waitMs: 120_000});
  t.is(order([me({learned: learned({loadMs: 1000})}), loader, busy]), 'L H S');
  t.is(ranked([me({learned: learned()}), loader, busy])[2]?.reason, 'behind L: no second copy');
});

test('S21: a holder that answered busy still holds: nobody else is asked to load unless its wait is longer', t => {
  const [first] = ranked([me({learned: learned()}), holder({exclusion: 'busy', waitMs: 1000})]);
  t.like(first, {place: undefined});
  t.is(
    ranked([me({learned: learned()}), holder({exclusion: 'busy', waitMs: 1000})]).find(({self}) => self)?.exclusion,
    'second copy',
  );
  t.is(order([me({learned: learned()}), holder({exclusion: 'busy', waitMs: 60_000})]), 'S');
  const off = ranked([me({learned: learned()}), holder({exclusion: 'busy', waitMs: 60_000})], {spread: 'off'});
  t.true(off.every(({place}) => place === undefined));
});

test('a holder that failed or refused does not hold: the next one loads', t => {
  t.is(order([me({learned: learned()}), holder({exclusion: 'tried'})]), 'S');
  t.is(order([me(), holder({exclusion: 'tried'})], {spread: 'off'}), 'S');
});

test('a conversation stays where its prompt was read, until waiting there costs more than reading it again', t => {
  const here = holder({hitBytes: 38_000});
  const other = candidate('N', {state: 'ready', learned: learned()});
  const long = {promptBytes: 40_000}; // 10 s to read at 1000 tokens a second
  t.is(order([other, here], long), 'H N');
  t.is(order([other, {...here, waitMs: 20_000}], long), 'N H');
});

test('own offers that a record does not know of yet count as its load', t => {
  const a = holder({busy: 3, running: 3, ownOffers: 3});
  const b = candidate('B', {state: 'ready', learned: learned(), busy: 3, running: 3});
  const [first] = ranked([a, b]);
  t.like(first, {name: 'B'});
  const found = ranked([a, b]).find(({name}) => name === 'H');
  t.is(found?.cost?.terms.queue, 3.75); // three requests of 5 s over four slots
});

test('what a busy owner said of its wait grows old: the time since counts', t => {
  const cost = ranked([holder({waitMs: 8000, ageMs: 3000})])[0]?.cost;
  t.is(cost?.terms.queue, 5);
});

test('a relayed way costs, and so does a node that failed', t => {
  const near = candidate('N', {state: 'ready', learned: learned()});
  t.is(order([holder({relayed: true}), near]), 'N H');
  t.is(order([holder({failures: 3}), near]), 'N H');
});

test('the bytes of a recording count for the way to a node, although they are no prompt to be read', t => {
  const waiting = me({state: 'ready', waitMs: 3000, learned: learned()});
  const relayed = holder({relayed: true, freeSlots: 4});
  const [prompt, recording] = [{promptBytes: 4096}, {promptBytes: 4096, bodyBytes: 60e6}];
  t.is(order([waiting, relayed], prompt), 'H S');
  t.is(order([waiting, relayed], recording), 'S H');
  const path = ranked([relayed], recording)[0]?.cost?.terms.path ?? 0;
  t.true(path > 60 && path < 61, String(path));
  t.is(ranked([relayed], recording)[0]?.cost?.terms.prefill, ranked([relayed], prompt)[0]?.cost?.terms.prefill);
});

test('S76, S77: history orders equals and never makes a candidate of a node that is out', t => {
  t.is(order([holder({failures: 9}), candidate('N', {exclusion: 'artifact'})]), 'H');
});

test('a node that has measured nothing counts as its other models say, or as the others do', t => {
  const likely = {prefillTps: 4000, decodeTps: 200, loadMs: 1000};
  const [first] = ranked([holder({exclusion: 'stale'}), candidate('A', {likely}), me({learned: learned()})]);
  t.like(first, {name: 'A'});
  t.is(first?.cost?.sources.decode, 'guess');
  const plain = ranked([candidate('A'), me({learned: learned({decodeTps: 77})})]);
  const costs = plain.map(({cost}) => cost?.terms.decode);
  t.is(costs[0], costs[1]);
});

test('every term says where it comes from', t => {
  const [first] = ranked([holder()]);
  t.like(first?.cost?.sources, {path: 'measured', queue: 'measured', prefill: 'measured', decode: 'measured'});
  const [guessed] = ranked([candidate('A', {roundTripMs: undefined})]);
  t.like(guessed?.cost?.sources, {path: 'guess', model: 'guess', prefill: 'guess', decode: 'guess'});
});

test('the terms add up to the cost, and those before the first byte to its time', t => {
  const cost = ranked([me({learned: learned(), evictSeconds: 3}), holder({failures: 1})]).find(({self}) => self)?.cost;
  const {path = 0, model = 0, queue = 0, prefill = 0, decode = 0, evict = 0, copy = 0} = cost?.terms ?? {};
  t.is(cost?.firstByteSeconds, path + model + queue + prefill);
  t.is(cost?.seconds, path + model + queue + prefill + decode + evict + copy);
});

test('R25: a prompt that cannot fit the context of one node goes to another first', t => {
  const short = holder({contextTokens: 4096, freeSlots: 4});
  const long = candidate('L', {state: 'ready', contextTokens: 32_768, waitMs: 5000, learned: learned()});
  t.is(order([short, long], {promptBytes: 100_000}), 'L H');
  t.is(order([short, long], {promptBytes: 1000}), 'H L');
});

test('a limit on output tokens shortens the writing', t => {
  const decode = (maxTokens: number | undefined): number | undefined =>
    ranked([holder()], {maxTokens})[0]?.cost?.terms.decode;
  t.is(decode(undefined), 2);
  t.is(decode(10), 0.1);
});

test('a machine on its battery is spared, the more the emptier it is; a hot one goes half as fast', t => {
  const near = candidate('N', {state: 'ready', learned: learned()});
  t.is(order([holder({batteryShare: 0.5, freeSlots: 4}), near]), 'N H');
  const costs = ranked([holder({batteryShare: 0.4}), candidate('W', {...holder(), node: near.node, isHot: true})]);
  const [of] = costs.filter(({name}) => name === 'H');
  t.is(of?.cost?.terms.policy, 3 * 0.6);
  const hot = costs.find(({isHot}) => isHot === true)?.cost?.terms;
  t.is(hot?.decode, 2 * (of?.cost?.terms.decode ?? 0));
  t.is(hot?.prefill, 2 * (of?.cost?.terms.prefill ?? 0));
});

test('guesses count beside each other: a machine like one that was slower than guessed is expected to be as slow', t => {
  const guess = {prefillTps: 50_000, decodeTps: 2000, loadMs: 900};
  const measured = holder({guess, learned: learned({prefillTps: 1000, decodeTps: 40})});
  const same = candidate('N', {guess});
  const twice = candidate('T', {guess: {...guess, prefillTps: 100_000, decodeTps: 4000}});
  const decode = (name: string): number | undefined =>
    ranked([measured, same, twice]).find(one => one.name === name)?.cost?.terms.decode;
  t.is(decode('N'), decode('H'));
  t.is(decode('T'), (decode('H') ?? 0) / 2);
  t.is(ranked([measured, same])[0]?.name, 'H', 'so that a guess alone is no reason for a second copy');
});
