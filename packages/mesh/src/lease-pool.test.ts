import test from 'ava';
import type {Connection} from '@libp2p/interface';
import {multiaddr} from '@multiformats/multiaddr';
import {createLibp2p} from 'libp2p';
import {noise} from '@chainsafe/libp2p-noise';
import {yamux} from '@chainsafe/libp2p-yamux';
import {tcp} from '@libp2p/tcp';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {until} from '../../../test/support/until.ts';
import {nodeIdOf} from './identity.ts';
import {LeasePool} from './lease-pool.ts';

const protocol = '/test/1';
const signal = new AbortController().signal;

async function libp2p(t: {teardown: (run: () => Promise<void>) => void}): ReturnType<typeof createLibp2p> {
  const node = await createLibp2p({
    addresses: {listen: ['/ip4/127.0.0.1/tcp/0']},
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
  });
  t.teardown(async () => node.stop());
  return node;
}

async function trial(t: {teardown: (run: () => Promise<void>) => void}) {
  const [asking, asked] = await Promise.all([libp2p(t), libp2p(t)]);
  await asked.handle(protocol, () => undefined);
  let connection: Connection | undefined = await asking.dial(
    asked.getMultiaddrs().map(address => multiaddr(address.toString())),
  );
  const clock = manualClock();
  let opened = 0;
  const pool = new LeasePool({
    connection: () => connection,
    open: async used => {
      const stream = await used.newStream(protocol);
      opened += 1;
      return stream;
    },
    clock,
    log: () => undefined,
  });
  const peer = nodeIdOf(asked.peerId);
  const warm = async (): Promise<void> => {
    pool.warm(peer);
    await clock.advance(1000);
    await until('the spares are open', () => opened === 2);
  };
  return {
    pool,
    peer,
    clock,
    opened: () => opened,
    lose: async () => {
      await connection?.close();
      connection = undefined;
    },
    warm,
  };
}

test('a stream that was opened in advance is used, each only once', async t => {
  const {pool, peer, opened, warm} = await trial(t);
  await warm();
  const streams = await Promise.all([pool.take(peer, signal), pool.take(peer, signal)]);
  t.is(opened(), 2);
  t.is(new Set(streams.map(stream => stream?.id)).size, 2);
});

test('more requests than spares open their own', async t => {
  const {pool, peer, opened, warm} = await trial(t);
  await warm();
  const streams = await Promise.all(Array.from({length: 8}, async () => pool.take(peer, signal)));
  t.is(opened(), 8);
  t.is(new Set(streams.map(stream => stream?.id)).size, 8);
});

test('a peer that is asked gets more spares, filled up together and only when few are left', async t => {
  const {pool, peer, clock, opened, warm} = await trial(t);
  await warm();
  await pool.take(peer, signal);
  await clock.advance(1000);
  await until('there are six', () => opened() === 7);
  for (let taken = 1; taken <= 2; taken += 1) await pool.take(peer, signal);
  await clock.advance(1000);
  t.is(opened(), 7);
  await pool.take(peer, signal);
  await clock.advance(1000);
  await until('they are filled up', () => opened() === 10);
});

test('a spare that is too old is not used', async t => {
  const {pool, peer, clock, opened, warm} = await trial(t);
  await warm();
  await clock.advance(5 * 60_000 + 1);
  await pool.take(peer, signal);
  t.is(opened(), 3);
});

test('without a connection there is no stream', async t => {
  const {pool, peer, warm, lose} = await trial(t);
  await warm();
  await lose();
  t.is(await pool.take(peer, signal), undefined);
});
