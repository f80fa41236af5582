import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import {noise} from '@chainsafe/libp2p-noise';
import {yamux} from '@chainsafe/libp2p-yamux';
import {generateKeyPair} from '@libp2p/crypto/keys';
import {gossipsub} from '@libp2p/gossipsub';
import type {GossipSub} from '@libp2p/gossipsub';
import {identify} from '@libp2p/identify';
import type {Identify} from '@libp2p/identify';
import type {Connection, Ed25519PrivateKey, Libp2p, Stream} from '@libp2p/interface';
import {peerIdFromPrivateKey} from '@libp2p/peer-id';
import {tcp} from '@libp2p/tcp';
import {multiaddr} from '@multiformats/multiaddr';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {createLibp2p} from 'libp2p';
import {encodeExchange, encodeMembersQuestion, encodeSignedRecord} from '@hearsay/core';
import type {Environment, Log, MeshHandlers, NodeId} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {serve, text} from '../../../test/support/mesh-trial.ts';
import type {Seen} from '../../../test/support/mesh-trial.ts';
import {until} from '../../../test/support/until.ts';
import {nodeIdOf, signRecord} from './identity.ts';
import {MeshParts} from './mesh-parts.ts';
import type {MeshConfig} from './mesh-parts.ts';
import {startMesh} from './start-mesh.ts';
import {watchConnections} from './watch-connections.ts';

const mebibyte = 1024 * 1024;
const topic = '/hearsay/records/1';

async function host(t: ExecutionContext, environment: Environment = realEnvironment()): Promise<Seen> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-hostile-'));
  const mesh = await startMesh(configIn(folder), environment);
  t.teardown(async () => {
    await mesh[Symbol.asyncDispose]();
    await rm(folder, {recursive: true, force: true});
  });
  return serve(mesh);
}

function configIn(folder: string): MeshConfig {
  return {
    mesh: 'home',
    identityFile: join(folder, 'node.key'),
    nodeName: 'host',
    port: 0,
    defaultPort: 1,
    peers: [],
    listen: ['/ip4/127.0.0.1/tcp/0'],
    discovery: false,
  };
}

/** With a lower id than that node, so that it may dial it as often as it likes. */
async function stranger(
  t: ExecutionContext,
  than?: Seen,
  key?: Ed25519PrivateKey,
): Promise<Libp2p<{identify: Identify; pubsub: GossipSub}>> {
  let privateKey = key ?? (await generateKeyPair('Ed25519'));
  const isHigher = (): boolean => nodeIdOf(peerIdFromPrivateKey(privateKey)) > (than?.mesh.self ?? '~');
  while (isHigher()) privateKey = await generateKeyPair('Ed25519');
  const node = await createLibp2p({
    privateKey,
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    services: {
      identify: identify(),
      pubsub: gossipsub({
        globalSignaturePolicy: 'StrictNoSign',
        allowPublishToZeroTopicPeers: true,
        floodPublish: true,
      }),
    },
  });
  t.teardown(async () => node.stop());
  return node;
}

/** A machine that is busy may not be through with a handshake in time. */
async function connect(node: Libp2p, {mesh}: Seen): Promise<Connection> {
  const address = multiaddr(mesh.addresses()[0] ?? '');
  return until('it is connected', async () => node.dial(address, {force: true}).catch(() => undefined));
}

/** Sends as much as the other side takes, up to `bytesMax`; tells how much that was. */
async function flood(stream: Stream, first: Uint8Array, bytesMax: number): Promise<number> {
  let sent = 0;
  const chunk = new Uint8Array(64 * 1024);
  try {
    if (first.length > 0) stream.send(first);
    while (sent < bytesMax && stream.status === 'open') {
      sent += chunk.length;
      if (stream.send(chunk)) await new Promise(resolve => void setTimeout(resolve));
      else await drained(stream);
    }
  } catch {
    // It was reset.
  }
  return sent;
}

async function drained(stream: Stream): Promise<void> {
  await new Promise<void>(resolve => {
    for (const event of ['drain', 'close'] as const) stream.addEventListener(event, () => resolve(), {once: true});
  });
}

/** As the protocols write frames: the length first. */
function framed(message: Uint8Array): Uint8Array {
  const length = [];
  for (let left = message.length; ; left >>>= 7) {
    length.push(left > 127 ? (left & 127) | 128 : left);
    if (left <= 127) break;
  }
  return Uint8Array.from([...length, ...message]);
}

const greetingOf = (mesh: string): Uint8Array =>
  framed(encodeExchange({mesh, name: 'x', records: [], addresses: [], member: undefined}));
const greeting = greetingOf('elsewhere');
const question = framed(encodeMembersQuestion({kind: 'join', secret: new Uint8Array(16), name: 'x'}));

for (const [protocol, first] of [
  ['/hearsay/records/1', greeting],
  ['/hearsay/members/1', question],
  ['/hearsay/members/1', new Uint8Array()],
  ['/meshsub/1.1.0', new Uint8Array()],
] as const) {
  const how = first.length > 0 ? 'after a frame that fits' : 'from the start';
  test.serial(`whoever sends without end on ${protocol} ${how} is cut off before it fills the memory`, async t => {
    const seen = await host(t);
    const node = await stranger(t);
    const connection = await connect(node, seen);
    const stream = await connection.newStream(protocol);
    const sent = await flood(stream, first, 128 * mebibyte);
    t.true(sent < 16 * mebibyte, `${sent} bytes were taken`);
  });
}

test.serial('all streams of a stranger together are cut off before they fill the memory', async t => {
  const seen = await host(t);
  const node = await stranger(t);
  const connection = await connect(node, seen);
  const opened = Array.from({length: 30}, async () => connection.newStream('/meshsub/1.1.0'));
  const streams = (await Promise.allSettled(opened)).flatMap(each => (each.status === 'fulfilled' ? [each.value] : []));
  const sent = await Promise.all(streams.map(async stream => flood(stream, new Uint8Array(), 3 * mebibyte)));
  const all = sent.reduce((sum, bytes) => sum + bytes, 0);
  t.true(all < 16 * mebibyte, `${all} bytes were taken on ${streams.length} streams`);
  await until('the connection is gone', () => connection.status !== 'open');
});

test.serial('a stranger that was refused on one connection is let go on the others too', async t => {
  const seen = await host(t);
  const node = await stranger(t, seen);
  const first = await connect(node, seen);
  const connections = [first, await connect(node, seen), await connect(node, seen)];
  const stream = await first.newStream('/hearsay/records/1');
  stream.send(greeting);
  await until('it is refused', () => seen.mesh.links().some(({refusal}) => refusal !== undefined));
  for (const connection of connections) await until('it is gone', () => connection.status !== 'open');
  t.is(new Set(connections).size, 3);
});

test.serial('a stranger that has gone leaves nothing behind', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-hostile-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true}));
  const environment = realEnvironment();
  const parts = await MeshParts.make(configIn(folder), environment);
  await parts.open();
  t.teardown(async () => parts.node.stop());
  const {clock} = environment;
  const exchange = {begin: async () => {}};
  using _watch = watchConnections({parts, exchange, gone: () => {}, isClosing: () => false, clock});
  parts.handlers = handlersOf();
  for (let index = 0; index < 5; index += 1) {
    const node = await stranger(t);
    const connection = await node.dial(parts.listening());
    await connection.newStream('/ipfs/id/1.0.0');
    await until('it is known', async () => (await parts.node.peerStore.all()).length > 0);
    await connection.close();
    await until('it is forgotten', async () => (await parts.node.peerStore.all()).length === 0);
  }
  t.pass();
});

/** A node that is admitted and takes part in the gossip; records are signed with its own key. */
async function gossiper(t: ExecutionContext, seen: Seen) {
  const privateKey = await generateKeyPair('Ed25519');
  const node = await stranger(t, undefined, privateKey);
  const self = nodeIdOf(node.peerId);
  node.services.pubsub.subscribe(topic);
  const connection = await connect(node, seen);
  const stream = await connection.newStream('/hearsay/records/1');
  stream.send(greetingOf('home'));
  await until('it is heard', () => node.services.pubsub.getSubscribers(topic).length > 0);
  return {
    self,
    say: async (data: Uint8Array) => node.services.pubsub.publish(topic, data),
    record: async (payload: Uint8Array) => encodeSignedRecord(signRecord(privateKey, self, payload)),
  };
}

test.serial('who spreads what cannot be used is heard no more for a while, and the others are', async t => {
  const warnings: string[] = [];
  const environment = realEnvironment();
  const log: Log = (level, message, fields) => {
    if (level === 'warn') warnings.push(`${message} ${String(fields?.['node'])}`);
  };
  const seen = await host(t, {...environment, log});
  const [good, bad] = [await gossiper(t, seen), await gossiper(t, seen)];
  const heard = (node: NodeId): number => seen.judged.filter(({record}) => record.node === node).length;
  for (const each of [good, bad]) {
    await each.say(await each.record(text('first')));
    await until('it is heard', () => heard(each.self) === 1);
  }
  for (let index = 0; index < 20; index += 1) await bad.say(text(`junk ${index}`));
  await until('it is told', () => warnings.some(line => line.includes(bad.self)));
  await sleep(3000); // gossipsub believes its last look at a peer for a second, and then for one more
  await bad.say(await bad.record(text('second')));
  await good.say(await good.record(text('second')));
  await until('the good one is heard', () => heard(good.self) === 2);
  await sleep(1000);
  t.is(heard(bad.self), 1);
  t.is(warnings.length, 1, 'once, and not for each message');
});

test.serial('a forged record is not taken for the good one that it was made from, whichever comes first', async t => {
  const seen = await host(t);
  const [good, bad] = [await gossiper(t, seen), await gossiper(t, seen)];
  const heard = (words: string): boolean =>
    seen.judged.some(({record}) => Buffer.from(record.payload).equals(text(words)));
  const record = await good.record(text('true'));
  const forged = Uint8Array.from(record);
  forged.set(text('fals'), Buffer.from(record).indexOf('true'));
  await bad.say(forged);
  await bad.say(await bad.record(text('after')));
  await until('both messages of the one who forges have come', () => heard('after'));
  await good.say(record);
  await until('the good one is heard', () => heard('true'));
  t.deepEqual(
    seen.judged.map(({record: {node}}) => node),
    [bad.self, good.self],
  );
});

test.serial('who floods with what is right and of no use is heard no more for a while', async t => {
  const seen = await host(t);
  const [good, bad] = [await gossiper(t, seen), await gossiper(t, seen)];
  const newer = (await bad.record(text('00000'))).with(1, 2);
  for (let index = 0; index < 3000; index += 1) {
    newer.set([index >> 8, index & 255], newer.length - 2);
    await bad.say(newer.slice());
  }
  await sleep(3000); // gossipsub believes its last look at a peer for a second, and then for one more
  for (const each of [bad, good]) await each.say(await each.record(text('useful')));
  await until('the good one is heard', () => seen.judged.some(({record}) => record.node === good.self));
  await sleep(1000);
  t.true(seen.judged.every(({record}) => record.node === good.self));
});

test.serial('what a newer version says is not understood, and not held against who says it', async t => {
  const seen = await host(t);
  const newer = await gossiper(t, seen);
  for (let index = 0; index < 20; index += 1) {
    const record = await newer.record(text(String(index)));
    await newer.say(record.with(1, 2)); // an array begins with its length, and this one with the version
  }
  await newer.say(await newer.record(text('readable')));
  await until('it is heard', () => seen.judged.some(({record}) => record.node === newer.self));
  t.is(seen.judged.length, 1);
});

function handlersOf(): MeshHandlers {
  return {
    judge: () => 'ignore',
    newest: () => [],
    inventory: () => new Uint8Array(),
    offer: async () => ({kind: 'refused', code: 'broken', message: 'no offer was expected'}),
    linkChanged: () => {},
  };
}

test.serial('a node that is admitted holds no more than a few connections', async t => {
  const seen = await host(t);
  const node = await stranger(t, seen);
  const first = await connect(node, seen);
  const stream = await first.newStream('/hearsay/records/1');
  stream.send(greetingOf('home'));
  await until('it is admitted', () => seen.mesh.links().some(({admitted}) => admitted));
  const others: Connection[] = [];
  for (let index = 0; index < 10; index += 1) others.push(await connect(node, seen));
  await until('the others are gone', () => others.filter(({status}) => status === 'open').length === 3);
  t.is(first.status, 'open');
});
