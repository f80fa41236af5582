import {toDigest} from '@hearsay/core';
import type {NodeId, Reach} from '@hearsay/core';
import test from 'ava';
import {digest, node} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {failingEngines} from './failing-engines.ts';

const [self, peer] = [node('S'), node('P')];
const way: Reach = {roundTripMs: 1, relayed: false, quarantinedUntilMs: -Infinity, failures: 0, ownOffers: 0};
const ways: ReadonlyMap<NodeId, Reach> = new Map([[peer, way]]);

function trial() {
  const clock = manualClock();
  const engines = failingEngines(clock);
  const aloneMs = (of: NodeId, letter = 'a'): number => {
    const until = engines.reach(ways, self, [digest(letter), digest('f')]).get(of)?.quarantinedUntilMs ?? 0;
    return Math.max(0, until - clock.monotonicMs());
  };
  const fail = (of: NodeId, times: number): void => {
    for (let count = 0; count < times; count += 1) engines.failed(of, digest('a'));
  };
  return {aloneMs, clock, engines, fail};
}

test('R30: an engine that fails requests one after the other is left alone, ever longer, and for that model only', t => {
  const {aloneMs, engines, fail} = trial();
  fail(peer, 1);
  t.is(aloneMs(peer), 0, 'one may have been the fault of the request');
  fail(peer, 1);
  t.is(aloneMs(peer), 500);
  t.is(engines.reach(ways, self, [digest('a')]).get(peer)?.failures, 1, 'and costs more than others');
  fail(peer, 1);
  t.is(aloneMs(peer), 1000);
  t.is(aloneMs(peer, 'b'), 0);
  fail(peer, 30);
  t.is(aloneMs(peer), 60_000);
});

test('an answer that goes well, and a minute without failures, make good what was before', async t => {
  const {aloneMs, clock, engines, fail} = trial();
  fail(peer, 3);
  engines.succeeded(peer, digest('a'));
  t.is(engines.reach(ways, self, [digest('a')]), ways);
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
  t.false(engines.reach(ways, self, [digest('a')]).has(node('Q')));
});

test('however many engines fail, only the newest are remembered', t => {
  const {engines} = trial();
  for (let times = 0; times < 2; times += 1) engines.failed(peer, digest('a'));
  t.not(engines.reach(ways, self, [digest('a')]).get(peer), way);
  for (let index = 0; index < 1000; index += 1) {
    engines.failed(peer, toDigest(`sha256:${String(index).padStart(64, '0')}`));
  }
  t.is(engines.reach(ways, self, [digest('a')]).get(peer), way);
});
