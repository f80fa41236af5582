import test from 'ava';
import {encodeBeat, encodeInventory, isAlive, toNodeId, viewNodesMax} from '@hearsay/core';
import type {Beat, NodeId} from '@hearsay/core';
import {beat, directLink, model, node} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {inventoryDigest} from './announcer.ts';
import {startViewKeeper} from './view-keeper.ts';

const inventory = encodeInventory({models: [model('m', 'a')]});
const peer = node('B');

/** A keeper that has heard one beat of a linked peer, whose inventory fails as often as told. */
function trial(failures: number) {
  const clock = manualClock();
  let asked = 0;
  const keeper = startViewKeeper({
    clock,
    log: () => undefined,
    mesh: {
      self: node('A'),
      inventory: async () => {
        asked += 1;
        if (asked <= failures) throw new Error('not admitted');
        return inventory;
      },
    },
  });
  const payload = encodeBeat(beat('B', {inventory: inventoryDigest(inventory)}));
  keeper.linkChanged(peer, directLink(peer));
  keeper.judge({record: {node: peer, payload, signature: new Uint8Array(64)}, ageMs: 0});
  const names = (): readonly string[] =>
    (keeper.view().nodes.get(peer)?.inventory?.models ?? []).flatMap(({names: all}) => all);
  return {keeper, clock, names, asked: () => asked};
}

test('an inventory that could not be fetched is asked for again before the next beat', async t => {
  const {clock, names} = trial(2);
  await clock.advance(100);
  t.deepEqual(names(), []);
  await clock.advance(900);
  t.deepEqual(names(), ['m']);
});

test('a peer that never gives its inventory is not asked for ever', async t => {
  const {clock, asked} = trial(Infinity);
  await clock.advance(1900);
  const attempts = asked();
  await clock.advance(5000);
  t.is(asked(), attempts);
  t.is(attempts, 4);
});

test('who has which models is only looked at anew when that may have changed, not with every change of load', async t => {
  const {keeper, clock} = trial(0);
  await clock.advance(10);
  const before = keeper.holdings();
  keeper.reach();
  const payload = encodeBeat(beat('B', {sequence: 50, loadSeq: 9}));
  t.is(keeper.judge({record: {node: peer, payload, signature: new Uint8Array(64)}, ageMs: 0}), 'accept');
  t.is(keeper.holdings(), before);
  const renamed = encodeBeat(beat('B', {sequence: 51, name: 'other'}));
  keeper.judge({record: {node: peer, payload: renamed, signature: new Uint8Array(64)}, ageMs: 0});
  t.not(keeper.holdings(), before);
  const known = keeper.holdings();
  keeper.linkChanged(peer, undefined);
  t.not(keeper.holdings(), known);
});

test('what was heard in one mesh is not passed on in another, and who is there too is met again', t => {
  const {keeper} = trial(0);
  const held = keeper.held();
  t.is(held.length, 1);
  keeper.forget();
  t.deepEqual(keeper.held(), []);
  t.is(keeper.view().nodes.size, 0);
  for (const aged of held) t.is(keeper.judge(aged), 'accept');
  t.is(keeper.held().length, 1);
});

test('an own offer counts until it is answered, or until a record that can know of it', t => {
  const {keeper} = trial(0);
  const ownOffers = (): number | undefined => keeper.reach().get(peer)?.ownOffers;
  const beatOf = (sequence: number, loadSeq: number): void => {
    const payload = encodeBeat(beat('B', {sequence, loadSeq}));
    keeper.judge({record: {node: peer, payload, signature: new Uint8Array(64)}, ageMs: 0});
  };
  {
    using answered = keeper.offering(peer);
    using taken = keeper.offering(peer);
    t.is(ownOffers(), 2);
    taken.untilRecord(undefined);
    answered[Symbol.dispose]();
  }
  t.is(ownOffers(), 1);
  beatOf(2, 0);
  t.is(ownOffers(), 1, 'its load has not changed since');
  beatOf(3, 1);
  t.is(ownOffers(), 0);
});

test('an own offer that was taken counts until a record comes that knows of it, which may be there already', t => {
  const {keeper} = trial(0);
  const ownOffers = (): number | undefined => keeper.reach().get(peer)?.ownOffers;
  const beatOf = (sequence: number, loadSeq: number): void => {
    const payload = encodeBeat(beat('B', {sequence, loadSeq}));
    keeper.judge({record: {node: peer, payload, signature: new Uint8Array(64)}, ageMs: 0});
  };
  keeper.offering(peer).untilRecord(7);
  beatOf(2, 6);
  t.is(ownOffers(), 1, 'what changed there was something else');
  beatOf(3, 7);
  t.is(ownOffers(), 0);
  keeper.offering(peer).untilRecord(7);
  t.is(ownOffers(), 0);
});

test('an own offer ends when its node has started anew, also over a connection that never broke', t => {
  const {keeper} = trial(0);
  const boot = beat('B').boot + 1;
  const payloadOf = (sequence: number, changes: Partial<Beat>): Uint8Array =>
    encodeBeat(beat('B', {sequence, ...changes}));
  const hear = (payload: Uint8Array): void =>
    void keeper.judge({record: {node: peer, payload, signature: new Uint8Array(64)}, ageMs: 0});
  hear(payloadOf(2, {loadSeq: 50_000}));
  keeper.offering(peer).untilRecord(50_001);
  t.is(keeper.reach().get(peer)?.ownOffers, 1);
  hear(payloadOf(1, {boot, loadSeq: 3}));
  t.is(keeper.reach().get(peer)?.ownOffers, 0);
});

test('an own offer ends with the connection that it went over: after a restart the node counts its load anew', t => {
  const {keeper} = trial(0);
  keeper.offering(peer).untilRecord(1_000_000);
  t.is(keeper.reach().get(peer)?.ownOffers, 1);
  const link = keeper.links().get(peer);
  keeper.linkChanged(peer, undefined);
  keeper.linkChanged(peer, link);
  t.is(keeper.reach().get(peer)?.ownOffers, 0);
});

test('R33: a node in quarantine is probed by one request, and left alone again until that is answered', async t => {
  const {clock, keeper} = trial(0);
  const isLeftAlone = (): boolean => (keeper.reach().get(peer)?.quarantinedUntilMs ?? 0) > clock.monotonicMs();
  keeper.failed(peer, 20_000);
  await clock.advance(19_000);
  t.true(isLeftAlone());
  await clock.advance(2000);
  t.false(isLeftAlone());
  {
    using _probe = keeper.offering(peer);
    t.true(isLeftAlone());
  }
  keeper.succeeded(peer);
  t.false(isLeftAlone());
});

test('this node too is left alone after its own engine has failed', t => {
  const {keeper} = trial(0);
  t.false(keeper.reach().has(node('A')));
  keeper.failed(node('A'), 1000);
  t.is(keeper.reach().get(node('A'))?.failures, 1);
});

/** A clock that can stand still, as for a process that is not run. */
function stallingClock() {
  const clock = manualClock();
  let lostMs = 0;
  return {
    ...clock,
    monotonicMs: () => clock.monotonicMs() + lostMs,
    stall: (ms: number): void => void (lostMs += ms),
  };
}

function heardKeeper(clock: ReturnType<typeof stallingClock>, letters: readonly string[]) {
  const keeper = startViewKeeper({
    clock,
    log: () => undefined,
    mesh: {self: node('A'), inventory: async () => inventory},
  });
  for (const letter of letters) {
    const payload = encodeBeat(beat(letter, {ttlMs: 7000}));
    keeper.judge({record: {node: node(letter), payload, signature: new Uint8Array(64)}, ageMs: 0});
  }
  const alive = (): number =>
    [...keeper.view().nodes.values()].filter(known => isAlive(known, clock.monotonicMs())).length;
  return {keeper, alive};
}

test('a node that was stalled removes nobody before it could hear them', async t => {
  const clock = stallingClock();
  const {keeper, alive} = heardKeeper(clock, ['B', 'C']);
  await clock.advance(3000);
  clock.stall(9000);
  await clock.advance(2000);
  t.is(alive(), 2);
  const ages = keeper.held().map(({ageMs}) => ageMs);
  t.true(
    ages.every(ageMs => ageMs === 14_000),
    'what others are told keeps its true age',
  );
  await clock.advance(20_000);
  t.is(keeper.view().nodes.size, 0, 'a doubt ends');
});

test('without a stall, a node past its life is removed at once, also when it is the only one', async t => {
  const clock = stallingClock();
  const {keeper, alive} = heardKeeper(clock, ['B']);
  await clock.advance(7000);
  t.is(alive(), 1);
  await clock.advance(1100);
  t.is(keeper.view().nodes.size, 0);
});

test('when all of three or more are past their life at once, they get a little more time', async t => {
  const clock = stallingClock();
  const {keeper, alive} = heardKeeper(clock, ['B', 'C', 'D']);
  await clock.advance(8500);
  t.is(alive(), 3);
  await clock.advance(5000);
  t.is(keeper.view().nodes.size, 0);
});

test('a peer that is here is met, though another one tells of more nodes than there can be', t => {
  const {keeper} = trial(0);
  const judge = (id: NodeId): string =>
    keeper.judge({record: {node: id, payload: encodeBeat(beat('B')), signature: new Uint8Array(64)}, ageMs: 0});
  for (let index = 0; index < viewNodesMax; index += 1) judge(madeUp(index));
  t.is(judge(madeUp(viewNodesMax)), 'ignore');
  const late = node('C');
  keeper.linkChanged(late, directLink(late));
  t.is(judge(late), 'accept');
  t.true(keeper.view().nodes.has(peer), 'who was here stays');
});

/** An id that no node has. */
function madeUp(index: number): NodeId {
  const alphabet = '123456789ABCDEFGHJ';
  const digits = index.toString(18).padStart(45, '0').split('');
  return toNodeId(`12D3Koo${digits.map(digit => alphabet[parseInt(digit, 18)]).join('')}`);
}
