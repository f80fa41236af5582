import {peerIdFromPrivateKey} from '@libp2p/peer-id';
import {generateKeyPair} from '@libp2p/crypto/keys';
import {StreamMessageEvent, TypedEventEmitter} from '@libp2p/interface';
import type {MessageStreamEvents, PeerId} from '@libp2p/interface';
import {multiaddr} from '@multiformats/multiaddr';
import test from 'ava';
import {isLoopbackAddress, isPrivateAddress} from '@hearsay/core';
import type {NodeId} from '@hearsay/core';
import {manualClock} from '../../../test/support/manual-clock.ts';
import type {ManualClock} from '../../../test/support/manual-clock.ts';
import {ConnectionGate} from './connection-gate.ts';
import {nodeIdOf} from './identity.ts';

const [lower, higher] = await pair();

async function pair(): Promise<[PeerId, PeerId]> {
  const peers = await Promise.all([0, 1].map(async () => peerIdFromPrivateKey(await generateKeyPair('Ed25519'))));
  const [a, b] = peers.toSorted((one, other) => (one.toString() < other.toString() ? -1 : 1));
  if (a === undefined || b === undefined) throw new Error('two keys were made');
  return [a, b];
}

interface Trial {
  readonly gate: ConnectionGate;
  readonly clock: ManualClock;
  readonly connected: Set<NodeId>;
}

function gateOf(self: PeerId, {serving = true, named = '', closed = false, relayed = false} = {}): Trial {
  const clock = manualClock();
  const connected = new Set<NodeId>();
  const gate = new ConnectionGate({
    self: nodeIdOf(self),
    clock,
    isServing: () => serving,
    isConnected: node => connected.has(node),
    isDirect: node => connected.has(node) && !relayed,
    isClosed: () => closed,
    isAdmitted: node => connected.has(node),
    isRefused: () => false,
    isNear: host => isPrivateAddress(host) || isLoopbackAddress(host),
    metSelf: () => {},
    isNamed: address => address.toString() === named,
  });
  return {gate, clock, connected};
}

const dialled = {remoteAddr: multiaddr('/ip4/127.0.0.1/tcp/1')};
const from = (text: string): {remoteAddr: ReturnType<typeof multiaddr>} => ({remoteAddr: multiaddr(text)});

test('when two nodes dial each other at once, the lower lets exactly one handshake pass', t => {
  for (const order of ['out first', 'in first']) {
    const {gate} = gateOf(lower);
    const outbound = (): boolean => gate.denyOutboundEncryptedConnection(higher, dialled);
    const inbound = (): boolean => gate.denyInboundEncryptedConnection(higher, dialled);
    const denied = order === 'out first' ? [outbound(), inbound()] : [inbound(), outbound()];
    t.deepEqual(denied, [false, true], order);
  }
});

test('the higher node takes whatever the lower one offers, so that no pair ends without a connection', t => {
  const {gate, connected} = gateOf(higher);
  t.false(gate.denyOutboundEncryptedConnection(lower, dialled));
  t.false(gate.denyInboundEncryptedConnection(lower, dialled));
  connected.add(nodeIdOf(lower));
  t.false(gate.denyInboundEncryptedConnection(lower, dialled));
  t.true(gate.denyOutboundEncryptedConnection(lower, dialled));
});

test('a handshake that led nowhere blocks the pair for three seconds at most', async t => {
  const {gate, clock} = gateOf(lower);
  t.false(gate.denyOutboundEncryptedConnection(higher, dialled));
  t.true(gate.denyInboundEncryptedConnection(higher, dialled));
  await clock.advance(3000);
  t.false(gate.denyInboundEncryptedConnection(higher, dialled));
  gate.settled(nodeIdOf(higher));
  t.false(gate.denyInboundEncryptedConnection(higher, dialled));
});

test('a dialled address is remembered with who answered there, and a node never connects to itself', t => {
  const {gate} = gateOf(lower);
  t.is(gate.nodeAt(dialled.remoteAddr), undefined);
  t.true(gate.denyOutboundEncryptedConnection(lower, dialled));
  t.is(gate.nodeAt(dialled.remoteAddr), nodeIdOf(lower));
});

test('only near addresses may come in or be dialled, and named ones may be dialled', t => {
  const far = '/ip4/203.0.113.9/tcp/4328';
  const {gate} = gateOf(lower);
  t.true(gate.denyInboundConnection(from(far)));
  t.false(gate.denyInboundConnection(from('/ip4/127.0.0.1/tcp/50000')));
  t.true(gate.denyDialMultiaddr(multiaddr(far)));
  t.false(gate.denyDialMultiaddr(multiaddr('/ip4/127.0.0.1/tcp/4328')));
  t.false(gateOf(lower, {named: far}).gate.denyDialMultiaddr(multiaddr(far)));
});

test('nobody comes in before the node serves', t => {
  t.true(gateOf(lower, {serving: false}).gate.denyInboundConnection(from('/ip4/127.0.0.1/tcp/50000')));
});

test('a relay serves members only, and passes a stranger on to them for the seconds that strangers have', t => {
  const open = gateOf(lower);
  t.true(open.gate.denyInboundRelayReservation(higher));
  t.true(open.gate.denyInboundRelayedConnection(higher));
  const {gate, connected} = gateOf(lower, {closed: true});
  t.true(gate.denyInboundRelayReservation(higher));
  t.true(gate.denyOutboundRelayedConnection(lower, higher));
  connected.add(nodeIdOf(higher));
  t.false(gate.denyInboundRelayReservation(higher));
  t.false(gate.denyInboundRelayedConnection(higher));
  t.false(gate.denyOutboundRelayedConnection(lower, higher));
});

test('a direct connection may be added to a relayed one, but no second one of either kind', t => {
  const relay = '/ip4/45.0.0.10/tcp/4328/p2p/12D3KooWQQ3ppkVzYfyLTnMTwizULhvAWB11nLezi6F7yic4wygS/p2p-circuit';
  const {gate, connected} = gateOf(higher, {closed: true, relayed: true});
  connected.add(nodeIdOf(lower));
  t.true(gate.denyOutboundEncryptedConnection(lower, {remoteAddr: multiaddr(relay)}));
  t.false(gate.denyOutboundEncryptedConnection(lower, dialled));
  const direct = gateOf(higher, {closed: true});
  direct.connected.add(nodeIdOf(lower));
  t.true(direct.gate.denyOutboundEncryptedConnection(lower, dialled));
});

test('members of a closed mesh may come from anywhere', t => {
  const {gate} = gateOf(lower, {closed: true});
  t.false(gate.denyInboundConnection(from('/ip4/203.0.113.9/tcp/4328')));
  t.false(gate.denyDialMultiaddr(multiaddr('/ip4/203.0.113.9/tcp/4328')));
});

/** A connection on which a test lets bytes come. */
function talkative() {
  const events = new TypedEventEmitter<MessageStreamEvents>();
  let cut: Error | undefined;
  return {
    connection: {
      ...dialled,
      addEventListener: events.addEventListener.bind(events),
      removeEventListener: events.removeEventListener.bind(events),
      abort: (reason: Error): void => void (cut = reason),
    },
    says: (bytes: number) => events.dispatchEvent(new StreamMessageEvent(new Uint8Array(bytes))),
    isCut: () => cut !== undefined,
  };
}

for (const [direction, limit] of [
  ['inbound', 512 * 1024],
  ['outbound', 4 * 1024 * 1024],
] as const) {
  test(`who is not admitted may send ${limit / 1024} KiB on an ${direction} connection, and not one byte more`, t => {
    for (const isAdmitted of [false, true]) {
      const {gate, connected} = gateOf(lower);
      const {connection, says, isCut} = talkative();
      const denied =
        direction === 'inbound'
          ? gate.denyInboundEncryptedConnection(higher, connection)
          : gate.denyOutboundEncryptedConnection(higher, connection);
      t.false(denied);
      if (isAdmitted) connected.add(nodeIdOf(higher));
      const chunk = 64 * 1024;
      for (let sent = 0; sent < limit; sent += chunk) says(chunk);
      t.false(isCut(), 'all of it was allowed');
      says(1);
      t.is(isCut(), !isAdmitted);
    }
  });
}
