import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import {noise} from '@chainsafe/libp2p-noise';
import {yamux} from '@chainsafe/libp2p-yamux';
import {gossipsub} from '@libp2p/gossipsub';
import {identify} from '@libp2p/identify';
import {tcp} from '@libp2p/tcp';
import {multiaddr} from '@multiformats/multiaddr';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {createLibp2p} from 'libp2p';
import {encodeExchange} from '@hearsay/core';
import type {AgedRecord, NodeId} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {isLinked, serve, text} from '../../../test/support/mesh-trial.ts';
import type {Seen} from '../../../test/support/mesh-trial.ts';
import {until} from '../../../test/support/until.ts';
import {nodeIdOf} from './identity.ts';
import type {MeshConfig} from './mesh-parts.ts';
import {startMesh} from './start-mesh.ts';

const topic = '/hearsay/records/1';

async function node(t: ExecutionContext, name: string, changes: Partial<MeshConfig> = {}): Promise<Seen> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-gossip-'));
  const settings = {mesh: 'home', identityFile: join(folder, 'node.key'), nodeName: name, port: 0, defaultPort: 4328};
  const mesh = await startMesh(
    {...settings, peers: [], listen: ['/ip4/127.0.0.1/tcp/0'], discovery: false, ...changes},
    realEnvironment(),
  );
  t.teardown(async () => {
    await mesh[Symbol.asyncDispose]();
    await rm(folder, {recursive: true, force: true});
  });
  return serve(mesh);
}

function addressOf({mesh}: Seen): string {
  return mesh.addresses()[0] ?? '';
}

interface Heard {
  copies: number;
  readonly records: Set<string>;
  /** That others have begun with it. */
  exchanges: number;
}

/** A member that counts every message it gets, copies too, and asks nobody to pass anything on. */
async function listener(t: ExecutionContext, peers: readonly Seen[], beforeListening = (): void => {}): Promise<Heard> {
  const heard: Heard = {copies: 0, records: new Set(), exchanges: 0};
  const count = ({data}: {data?: Uint8Array}): string => {
    heard.copies += 1;
    heard.records.add(String(data));
    return String(heard.copies);
  };
  const quiet = {D: 0, Dlo: 0, Dhi: 8, Dscore: 0, Dout: 0, Dlazy: 0, gossipFactor: 0};
  const libp2p = await createLibp2p({
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    services: {
      identify: identify(),
      pubsub: gossipsub({...quiet, globalSignaturePolicy: 'StrictNoSign', fastMsgIdFn: count}),
    },
  });
  t.teardown(async () => libp2p.stop());
  await libp2p.handle(topic, stream => {
    heard.exchanges += 1;
    stream.abort(new Error('counted'));
  });
  const message = encodeExchange({mesh: 'home', name: 'x', records: [], addresses: [], member: undefined});
  const frame = [message.length, ...message];
  for (const peer of peers) {
    const address = multiaddr(addressOf(peer));
    const connection = await until('it is connected', async () => libp2p.dial(address).catch(() => undefined));
    const stream = await connection.newStream(topic);
    stream.send(Uint8Array.from([...frame, ...frame])); // the greeting, and everything there is to tell
    await until('it is admitted', () => peer.links.get(nodeIdOf(libp2p.peerId))?.admitted === true);
  }
  beforeListening();
  libp2p.services.pubsub.subscribe(topic);
  await until('all are met', () => libp2p.services.pubsub.getSubscribers(topic).length === peers.length);
  return heard;
}

test('whoever is connected with all gets each record once, and not from everybody again', async t => {
  const a = await node(t, 'a');
  const b = await node(t, 'b', {peers: [addressOf(a)]});
  const all = [a, b];
  await until('they are linked', () => isLinked(a, b));
  const listening = await listener(t, all);
  const records = 60;
  for (let index = 0; index < records; index += 1) {
    const from = all[index % all.length] ?? a;
    await from.mesh.publish(await from.mesh.sign(text(`record ${index}`)));
  }
  const heard = (one: Seen): number => one.judged.filter(({record}) => record.node !== one.mesh.self).length;
  await until('all have all', () => listening.records.size === records && all.every(one => heard(one) >= records / 2));
  await sleep(300); // copies that are under way
  t.true(listening.copies < 1.5 * records, `${listening.copies} copies of ${records} records`);
});

test('a peer that joins the gossip is told again what it has missed, and nothing when it has missed nothing', async t => {
  const a = await node(t, 'a');
  const own = async (words: string): Promise<AgedRecord> => ({record: await a.mesh.sign(text(words)), ageMs: 0});
  const [first, second] = [await own('first'), await own('second')];
  a.newest = [first];
  const [current, behind] = [await listener(t, [a]), await listener(t, [a], () => (a.newest = [second]))];
  await until('who has missed something is told', () => behind.exchanges > 0);
  await until('both hear the gossip', async () => {
    await a.mesh.publish(await a.mesh.sign(text('now')));
    return current.copies > 0 && behind.copies > 0;
  });
  t.is(current.exchanges, 0);
});

test('nodes that are not connected with each other hear of each other through a third', async t => {
  const middle = await node(t, 'middle');
  const hidden = {listen: [], peers: [addressOf(middle)]};
  const [left, right] = [await node(t, 'left', hidden), await node(t, 'right', hidden)];
  await until('both are linked with it', () => isLinked(left, middle) && isLinked(right, middle));
  const heard = (one: Seen, from: NodeId): readonly string[] =>
    one.judged.filter(({record}) => record.node === from).map(({record}) => Buffer.from(record.payload).toString());
  const said = ['one', 'two', 'three'];
  for (const word of said) {
    await left.mesh.publish(await left.mesh.sign(text(word)));
    await until(`it has heard ${word}`, () => heard(right, left.mesh.self).includes(word));
  }
  t.false(isLinked(left, right));
});
