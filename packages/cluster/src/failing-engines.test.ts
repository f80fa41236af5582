import {emptyView, toDigest} from '@hearsay/core';
import type {Digest, EngineBeat, KnownNode, NodeId, Reach} from '@hearsay/core';
import test from 'ava';
import {beat, digest, engineBeat, model, node} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {failingEngines} from './failing-engines.ts';

const [self, peer] = [node('S'), node('P')];
const way: Reach = {roundTripMs: 1, relayed: false, quarantinedUntilMs: -Infinity, failures: 0, ownOffers: 0};
const ways: ReadonlyMap<NodeId, Reach> = new Map([[peer, way]]);
const [a, b] = [digest('a'), digest('b')];

/** This node and a peer, both with two models; the peer is connected. */
function trial(stored: readonly Digest[] = [a, b]) {
  const clock = manualClock();
  const models = stored.map(each => model('m', 'a', {digest: each}));
  const nodes = new Map<NodeId, KnownNode>();
  const told = (engines: readonly EngineBeat[]): void => {
    const signed = {node: peer, payload: new Uint8Array(), signature: new Uint8Array()};
    const inventory = {digest: '', models};
    nodes.set(peer, {beat: beat('P', {engines}), signed, madeAtMs: clock.monotonicMs(), inventory});
  };
  told([engineBeat('a', {ageSeconds: 3600})]);
  const engines = failingEngines({
    clock,
    self: () => ({beat: beat('S'), models}),
    view: () => ({...emptyView, nodes}),
  });
  const aloneMs = (of: NodeId, ...accepted: readonly Digest[]): number => {
    const until = engines.reach(ways, accepted.length > 0 ? accepted : [a]).get(of)?.quarantinedUntilMs ?? 0;
    return Math.max(0, until - clock.monotonicMs());
  };
  /** One after the other. */
  const fail = (of: NodeId, times: number, what = a): void => {
    for (let count = 0; count < times; count += 1) engines.failed(of, what, clock.monotonicMs());
  };
  return {aloneMs, clock, engines, fail, told};
}

test('R30: an engine that fails requests one after the other is left alone, ever longer, and for that model only', t => {
  const {aloneMs, engines, fail} = trial();
  fail(peer, 1);
  t.is(aloneMs(peer), 0, 'one may have been the fault of the request');
  fail(peer, 1);
  t.is(aloneMs(peer), 500);
  t.is(engines.reach(ways, [a]).get(peer)?.failures, 1, 'and costs more than others');
  fail(peer, 1);
  t.is(aloneMs(peer), 1000);
  t.is(aloneMs(peer, b), 0);
  fail(peer, 30);
  t.is(aloneMs(peer), 60_000);
});

test('of a request that several models may answer only the one that the node would run counts', t => {
  const {aloneMs, engines, fail} = trial([b]);
  fail(peer, 3, a);
  t.is(aloneMs(peer, a, b), 0, 'it has only the other');
  fail(peer, 2, b);
  t.is(aloneMs(peer, a, b), 500);
  t.is(engines.reach(ways, [a, b]).get(peer)?.failures, 1);
});

test('all that an engine had under way when it died is one failure', async t => {
  const {aloneMs, clock, engines, fail} = trial();
  await clock.advance(10);
  for (let count = 0; count < 16; count += 1) {
    await clock.advance(1);
    engines.failed(peer, a, count / 2);
  }
  t.is(aloneMs(peer), 0);
  fail(peer, 1);
  t.is(aloneMs(peer), 500, 'one that began later is another');
});

test('an engine that was left alone is tried by one request, and the others wait until that is answered', async t => {
  const {aloneMs, clock, engines, fail} = trial();
  fail(peer, 4);
  await clock.advance(1000);
  engines.offered(peer, [a]);
  t.is(aloneMs(peer), 1000, 'who insists on it does not make it wait longer');
  await clock.advance(1000);
  t.is(aloneMs(peer), 0);
  engines.offered(peer, [a]);
  t.is(aloneMs(peer), 2000);
  engines.succeeded(peer, a);
  t.is(aloneMs(peer), 0);
});

test('an engine that has been loaded anew is tried at once, though not for ever when it dies each time', async t => {
  const {aloneMs, clock, engines, fail, told} = trial();
  fail(peer, 20);
  for (let times = 0; times < 3; times += 1) {
    await clock.advance(2000);
    t.true(aloneMs(peer) > 0);
    told([engineBeat('a', {ageSeconds: 1})]);
    t.is(aloneMs(peer), 0);
    engines.offered(peer, [a]);
    t.is(aloneMs(peer), 60_000, 'by one request');
    fail(peer, 1);
  }
  await clock.advance(2000);
  told([engineBeat('a', {ageSeconds: 1})]);
  t.is(aloneMs(peer), 58_000);
});

test('a node that comes back has no failing engines', t => {
  const {aloneMs, engines, fail} = trial();
  fail(peer, 3);
  fail(self, 2);
  engines.forget(peer);
  t.is(aloneMs(peer), 0);
  t.is(aloneMs(self), 500);
});

test('an answer that goes well, and a minute without failures, make good what was before', async t => {
  const {aloneMs, clock, engines, fail} = trial();
  fail(peer, 3);
  engines.succeeded(peer, a);
  t.is(engines.reach(ways, [a]), ways);
  fail(peer, 1);
  t.is(aloneMs(peer), 0);
  await clock.advance(60_000);
  fail(peer, 1);
  t.is(aloneMs(peer), 0, 'the count has begun anew');
});

test('an engine of this node is left alone too; a node that is not connected does not become so', t => {
  const {aloneMs, engines, fail} = trial();
  fail(self, 2);
  fail(node('Q'), 2);
  t.is(aloneMs(self), 500);
  t.false(engines.reach(ways, [a]).has(node('Q')));
});

test('however many engines fail, only the newest are remembered', t => {
  const {engines, fail} = trial();
  fail(peer, 2);
  t.not(engines.reach(ways, [a]).get(peer), way);
  for (let index = 0; index < 1000; index += 1) {
    fail(peer, 1, toDigest(`sha256:${String(index).padStart(64, '0')}`));
  }
  t.is(engines.reach(ways, [a]).get(peer), way);
});
