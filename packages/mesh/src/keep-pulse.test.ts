import {generateKeyPair} from '@libp2p/crypto/keys';
import {peerIdFromPrivateKey} from '@libp2p/peer-id';
import type {Connection} from '@libp2p/interface';
import test from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {keepPulse} from './keep-pulse.ts';

interface Peer {
  /** `silent`: no byte comes back any more; `foreign`: it answers that it does not know the protocol. */
  state: 'silent' | 'foreign';
  readonly connection: Pick<Connection, 'remotePeer' | 'newStream' | 'abort' | 'rtt' | 'status'>;
  readonly cutAtMs: () => number | undefined;
}

async function trial(count: number) {
  const clock = manualClock();
  let lostMs = 0;
  const monotonicMs = (): number => clock.monotonicMs() + lostMs;
  const make = async (): Promise<Peer> => {
    let cutAtMs: number | undefined;
    const peer: Peer = {
      state: 'foreign',
      cutAtMs: () => cutAtMs,
      connection: {
        remotePeer: peerIdFromPrivateKey(await generateKeyPair('Ed25519')),
        status: 'open',
        async newStream() {
          if (peer.state === 'silent') return new Promise<never>(() => undefined);
          throw Object.assign(new Error('what?'), {name: 'UnsupportedProtocolError'});
        },
        abort() {
          cutAtMs ??= monotonicMs();
        },
      },
    };
    return peer;
  };
  const peers = await Promise.all(Array.from({length: count}, make));
  const open = () => peers.filter(({cutAtMs}) => cutAtMs() === undefined).map(({connection}) => connection);
  keepPulse({...realEnvironment(), clock: {...clock, monotonicMs}, connections: open});
  const stall = (ms: number): void => void (lostMs += ms);
  const fallSilent = (some: readonly Peer[]): void => {
    for (const peer of some) peer.state = 'silent';
  };
  return {clock, peers, stall, fallSilent, cut: () => peers.map(({cutAtMs}) => cutAtMs())};
}

test('a silent peer is cut within six seconds, and the others are not', async t => {
  const {clock, peers, fallSilent, cut} = await trial(4);
  await clock.advance(10_000);
  fallSilent(peers.slice(0, 1));
  await clock.advance(6000);
  const [silent, ...others] = cut();
  t.true(silent !== undefined && silent <= 16_000);
  t.deepEqual(others, [undefined, undefined, undefined]);
});

test('the only peer is cut within six seconds too', async t => {
  const {clock, peers, fallSilent, cut} = await trial(1);
  await clock.advance(10_000);
  fallSilent(peers);
  await clock.advance(6000);
  t.true(cut().every(ms => ms !== undefined));
});

test('when all of three fall silent at once, they get more time before they are cut', async t => {
  const {clock, peers, fallSilent, cut} = await trial(3);
  await clock.advance(10_000);
  fallSilent(peers);
  await clock.advance(7000);
  t.deepEqual(cut(), [undefined, undefined, undefined]);
  await clock.advance(5000);
  t.true(cut().every(ms => ms !== undefined));
});

test('a ping that waited while this node was stalled cuts nobody', async t => {
  const {clock, peers, fallSilent, stall, cut} = await trial(2);
  await clock.advance(9000);
  fallSilent(peers);
  await clock.advance(500);
  stall(8000); // the pongs lie unread
  await clock.advance(1000);
  t.deepEqual(cut(), [undefined, undefined]);
  await clock.advance(30_000);
  t.true(
    cut().every(ms => ms !== undefined),
    'a doubt ends',
  );
});
