import test from 'ava';
import type {NodeId} from '@hearsay/core';
import {node} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import type {ManualClock} from '../../../test/support/manual-clock.ts';
import {RoundTrips} from './round-trips.ts';

interface Peer {
  rtt?: number;
  readonly muxer: {readonly ping: () => Promise<void>};
}

/** So many peers, each of which answers after what `delays` says next, else after 5 ms. */
function peers(count: number, clock: ManualClock, delays: number[] = []): {links: Map<NodeId, Peer>; pings: NodeId[]} {
  const pings: NodeId[] = [];
  const ids = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123'.split('').slice(0, count).map(node);
  const ping = async (id: NodeId): Promise<void> => {
    pings.push(id);
    await clock.sleep(delays.shift() ?? 5);
  };
  return {links: new Map(ids.map(id => [id, {muxer: {ping: () => ping(id)}}])), pings};
}

function measure(links: ReadonlyMap<NodeId, Peer>, clock: ManualClock, changed: NodeId[] = []): RoundTrips {
  const found = {admitted: () => [...links.keys()], connection: (id: NodeId) => links.get(id)};
  return new RoundTrips({links: found, clock, changed: id => void changed.push(id)});
}

test('among fifty nodes one peer is measured a second, each in its turn, and among few each every ten seconds', async t => {
  for (const [count, expected] of [
    [49, 98],
    [3, 30],
  ] as const) {
    const clock = manualClock();
    const {links, pings} = peers(count, clock);
    using _roundTrips = measure(links, clock);
    await clock.advance(98_500);
    t.true(Math.abs(pings.length - expected) <= 2, `${pings.length} pings to ${count} peers`);
    t.is(new Set(pings).size, count);
    t.true([...links.values()].every(({rtt}) => rtt === 5));
  }
});

test('the first measurement of a peer is made and told at once, later ones when they differ', async t => {
  const clock = manualClock();
  const {links, pings} = peers(1, clock, [5, 5, 80]);
  const changed: NodeId[] = [];
  using roundTrips = measure(links, clock, changed);
  roundTrips.begin(node('A'));
  await clock.advance(100);
  t.is(links.get(node('A'))?.rtt, 5);
  t.is(changed.length, 1);
  roundTrips.begin(node('A')); // what is known is measured in its turn
  await clock.advance(10_000);
  t.is(pings.length, 2);
  t.is(changed.length, 1, 'nothing has changed');
  await clock.advance(10_100);
  t.is(links.get(node('A'))?.rtt, 80);
  t.is(changed.length, 2);
});

test('a peer whose multiplexer cannot be asked, or whose connection ends, has no round trip', async t => {
  const clock = manualClock();
  const broken = async (): Promise<void> => {
    throw new Error('the connection has ended');
  };
  const links = new Map<NodeId, Peer>([[node('A'), {muxer: {ping: broken}}]]);
  const changed: NodeId[] = [];
  using roundTrips = measure(links, clock, changed);
  roundTrips.begin(node('A'));
  roundTrips.begin(node('B'));
  await clock.advance(30_000);
  t.deepEqual(changed, []);
});
