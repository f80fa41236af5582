import {generateKeyPair} from '@libp2p/crypto/keys';
import type {Peer, PeerData, PeerId} from '@libp2p/interface';
import {peerIdFromPrivateKey} from '@libp2p/peer-id';
import test from 'ava';
import {mergeOnce} from './merge-once.ts';

test('that a peer speaks a protocol is noted once, and everything else each time', async t => {
  const noted: PeerData[] = [];
  const store = {
    async merge(id: PeerId, data: PeerData): Promise<Peer> {
      noted.push(data);
      return {id, addresses: [], protocols: data.protocols ?? [], metadata: new Map(), tags: new Map()};
    },
  };
  mergeOnce(store);
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
});

async function newId(): Promise<PeerId> {
  return peerIdFromPrivateKey(await generateKeyPair('Ed25519'));
}
