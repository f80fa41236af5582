import {multiaddr} from '@multiformats/multiaddr';
import type {Multiaddr} from '@multiformats/multiaddr';
import test from 'ava';
import type {NodeId} from '@hearsay/core';
import {node} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import type {ManualClock} from '../../../test/support/manual-clock.ts';
import {StayConnected} from './stay-connected.ts';

const [lower, self, higher] = [node('A'), node('M'), node('Z')];
const at = multiaddr('/ip4/10.0.0.5/tcp/4328');

interface Trial {
  readonly clock: ManualClock;
  readonly dials: {readonly atMs: number; readonly to: readonly string[]; readonly node: NodeId | undefined}[];
  readonly connected: Set<NodeId>;
  readonly refused: Set<NodeId>;
  /** Who answers where; nobody elsewhere. */
  readonly online: Map<string, NodeId>;
  readonly staying: StayConnected;
}

function trial(peers: readonly string[] = []): Trial {
  const clock = manualClock();
  const reached = new Map<string, NodeId>();
  const parts = {
    clock,
    dials: [] as Trial['dials'],
    connected: new Set<NodeId>(),
    refused: new Set<NodeId>(),
    online: new Map<string, NodeId>(),
  };
  const dial = async (addresses: readonly Multiaddr[], peer: NodeId | undefined): Promise<NodeId> => {
    parts.dials.push({atMs: clock.monotonicMs(), to: addresses.map(String), node: peer});
    const answering = addresses.map(String).find(address => parts.online.has(address));
    const found = parts.online.get(answering ?? '');
    if (answering === undefined || found === undefined) throw new Error('nobody there');
    reached.set(answering, found);
    if (!parts.refused.has(found)) parts.connected.add(found);
    return found;
  };
  const staying = new StayConnected(
    {self, peers, defaultPort: 4328, port: () => 4328},
    {
      isConnected: peer => parts.connected.has(peer),
      isRefused: peer => parts.refused.has(peer),
      nodeAt: address => reached.get(address.toString()),
      dial,
    },
    {clock, random: {next: () => 0, bytes: length => new Uint8Array(length)}, log: () => undefined},
  );
  return {...parts, staying};
}

test('a node with a higher id is dialled at once, one with a lower id only if it does not come itself', async t => {
  const {staying, clock, dials, connected} = trial();
  staying.sighted(higher, [at]);
  staying.sighted(lower, [at]);
  await clock.advance(0);
  t.deepEqual(
    dials.map(({node: peer}) => peer),
    [higher],
  );
  await clock.advance(700);
  t.deepEqual(
    dials.map(({node: peer}) => peer),
    [higher, lower],
  );
  staying.sighted(lower, [at]);
  connected.add(lower); // it came
  await clock.advance(5000);
  t.is(dials.length, 2);
  await staying[Symbol.asyncDispose]();
});

test('R60: a node that could not be dialled and then came itself is told of no more', async t => {
  const {staying, clock, connected} = trial();
  for (let sighting = 1; sighting <= 2; sighting += 1) {
    staying.sighted(higher, [at]);
    await clock.advance(1000);
  }
  t.is(staying.unanswered.warnings().length, 1);
  connected.add(higher);
  staying.sighted(higher, [at]);
  t.deepEqual(staying.unanswered.warnings(), []);
  await staying[Symbol.asyncDispose]();
});

test('R60: a node of which others told only that it is there is dialled, and nobody blames it for not answering', async t => {
  const {staying, clock, dials} = trial();
  for (let time = 1; time <= 3; time += 1) {
    staying.told(higher, [at]);
    await clock.advance(1000);
  }
  t.is(dials.length, 3);
  t.deepEqual(staying.unanswered.warnings(), []);
  await staying[Symbol.asyncDispose]();
});

test('every sighting counts: a peer that cannot be reached is dialled again when it is seen again', async t => {
  const {staying, clock, dials} = trial();
  for (let sighting = 1; sighting <= 3; sighting += 1) {
    staying.sighted(higher, [at]);
    staying.sighted(higher, [at]);
    await clock.advance(1000);
    t.is(dials.length, sighting);
  }
  await staying[Symbol.asyncDispose]();
});

test('neither itself, nor who is connected, nor who was refused is dialled', async t => {
  const {staying, clock, dials, connected, refused} = trial();
  connected.add(higher);
  refused.add(lower);
  for (const peer of [self, higher, lower]) staying.sighted(peer, [at]);
  await clock.advance(5000);
  t.deepEqual(dials, []);
  await staying[Symbol.asyncDispose]();
});

test('R63: a named peer is dialled for ever, at most ten seconds apart, and again after it went away', async t => {
  const {staying, clock, dials, connected, online} = trial([' 10.0.0.5 ']);
  staying.start();
  await clock.advance(3_600_000);
  const gaps = dials.slice(1).map(({atMs}, index) => atMs - (dials[index]?.atMs ?? 0));
  t.deepEqual(gaps.slice(0, 6), [500, 1000, 2000, 4000, 8000, 10_000]);
  t.true(gaps.slice(5).every(gap => gap === 10_000));
  online.set(at.toString(), higher);
  await clock.advance(10_000);
  t.true(connected.has(higher));
  const count = dials.length;
  await clock.advance(60_000);
  t.is(dials.length, count, 'nothing is dialled while it is there');
  connected.delete(higher);
  await clock.advance(1000);
  t.true(connected.has(higher), 'a restarted peer is back within a second');
  await staying[Symbol.asyncDispose]();
});

test('R63: duplicates are one peer, and the own address is nobody', async t => {
  const {staying, clock, dials} = trial(['10.0.0.5', '10.0.0.5:4328', '', '127.0.0.1:4328', '[::1]:4328']);
  staying.start();
  await clock.advance(0);
  t.deepEqual(
    dials.map(({to}) => to),
    [[at.toString()]],
  );
  t.true(staying.isNamed(at));
  t.false(staying.isNamed(multiaddr('/ip4/10.0.0.6/tcp/4328')));
  await staying[Symbol.asyncDispose]();
});

test('a named peer of another mesh is left alone while its refusal lasts', async t => {
  const {staying, clock, dials, refused, online} = trial(['10.0.0.5']);
  online.set(at.toString(), higher);
  refused.add(higher);
  staying.start();
  await clock.advance(30_000);
  t.is(dials.length, 1);
  refused.delete(higher);
  await clock.advance(1000);
  t.is(dials.length, 2);
  await staying[Symbol.asyncDispose]();
});

test('a peer that was lost is sought where it was, until it is back or the attempts are over', async t => {
  const {staying, clock, dials, online, connected} = trial();
  staying.pursue(higher, [at]);
  staying.pursue(higher, [at]);
  await clock.advance(8000);
  const first = dials.length;
  t.true(first >= 3);
  online.set(at.toString(), higher);
  await clock.advance(10_000);
  t.true(connected.has(higher));
  connected.delete(higher);
  online.clear();
  dials.length = 0;
  staying.pursue(higher, [at]);
  await clock.advance(3_600_000);
  t.is(dials.length, 35);
  await staying[Symbol.asyncDispose]();
});

test('stopping ends every wait at once', async t => {
  const {staying, clock, dials} = trial(['10.0.0.5']);
  staying.start();
  await clock.advance(0);
  await staying[Symbol.asyncDispose]();
  await clock.advance(60_000);
  t.is(dials.length, 1);
});
