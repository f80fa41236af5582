import {generateKeyPair} from '@libp2p/crypto/keys';
import type {Peer, PeerData, PeerId} from '@libp2p/interface';
import {peerIdFromPrivateKey} from '@libp2p/peer-id';
import test from 'ava';
import type {ManualClock} from '../../../test/support/manual-clock.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {mergeOnce} from './merge-once.ts';

test('that a peer speaks a protocol is noted once in a while, and everything else each time', async t => {
  const {store, noted, clock} = trial();
  const [a, b] = [await newId(), await newId()];
  for (let stream = 0; stream < 5; stream += 1) {
    t.deepEqual((await store.merge(a, {protocols: ['/lease']})).protocols, ['/lease']);
  }
  t.is(noted.length, 1);
  await store.merge(a, {protocols: ['/control']});
  await store.merge(b, {protocols: ['/lease']});
  t.is(noted.length, 3);
  for (let time = 0; time < 2; time += 1) await store.merge(a, {protocols: ['/lease'], multiaddrs: []});
  t.is(noted.length, 5);
  await clock.advance(60 * 60_000); // the peer store forgets after six
  await store.merge(a, {protocols: ['/lease']});
  t.is(noted.length, 6);
});

test('a peer that was deleted is noted anew', async t => {
  const {store, noted} = trial();
  const a = await newId();
  await store.merge(a, {protocols: ['/lease']});
  await store.delete(a);
  await store.merge(a, {protocols: ['/lease']});
  t.is(noted.length, 2);
});

function trial(): {store: Parameters<typeof mergeOnce>[0]; noted: PeerData[]; clock: ManualClock} {
  const noted: PeerData[] = [];
  const store = {
    async merge(id: PeerId, data: PeerData): Promise<Peer> {
      noted.push(data);
      return {id, addresses: [], protocols: data.protocols ?? [], metadata: new Map(), tags: new Map()};
    },
    delete: async (): Promise<void> => undefined,
  };
  const clock = manualClock();
  const given: Parameters<typeof mergeOnce>[0] = store;
  mergeOnce(given, clock);
  return {store: given, noted, clock};
}

async function newId(): Promise<PeerId> {
  return peerIdFromPrivateKey(await generateKeyPair('Ed25519'));
}
