import {mkdtemp, rm} from 'node:fs/promises';
import {createServer} from 'node:net';
import {once} from 'node:events';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {noise} from '@chainsafe/libp2p-noise';
import {yamux} from '@chainsafe/libp2p-yamux';
import {gossipsub} from '@libp2p/gossipsub';
import {identify} from '@libp2p/identify';
import {tcp} from '@libp2p/tcp';
import {multiaddr} from '@multiformats/multiaddr';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {createLibp2p} from 'libp2p';
import {Fault} from '@hearsay/core';
import type {Environment, Mesh} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {accept, isLinked, leaseOf, responseOf, serve, text} from '../../../test/support/mesh-trial.ts';
import {chunks, never, readAll} from '../../../test/support/mesh-trial.ts';
import {steadyPort} from '../../../test/support/steady-port.ts';
import {until} from '../../../test/support/until.ts';
import type {MeshConfig} from './mesh-parts.ts';
import {startMesh} from './start-mesh.ts';

const loopback = ['/ip4/127.0.0.1/tcp/0'];

interface Place {
  /** Starts a node with a key of its own for each name; a second start with one name is the same node again. */
  readonly start: (name: string, changes?: Partial<MeshConfig>, how?: Environment | 'everywhere') => Promise<Mesh>;
}

async function place(t: ExecutionContext): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-mesh-'));
  const meshes: Mesh[] = [];
  t.teardown(async () => {
    await Promise.all(meshes.map(async mesh => mesh[Symbol.asyncDispose]()));
    await rm(folder, {recursive: true});
  });
  return {
    async start(name, changes = {}, how = realEnvironment()) {
      const identityFile = join(folder, `${name}.key`);
      const settings = {mesh: 'home', identityFile, nodeName: name, port: 0, defaultPort: 4328, discovery: false};
      const where = how === 'everywhere' ? {} : {listen: loopback};
      const environment = how === 'everywhere' ? realEnvironment() : how;
      const mesh = await startMesh({...settings, ...where, peers: [], ...changes}, environment);
      meshes.push(mesh);
      return mesh;
    },
  };
}

function portOf(mesh: Mesh): number {
  return Number(/\/tcp\/(\d+)/u.exec(mesh.addresses()[0] ?? '')?.[1]);
}

/**
 * Long waits of the mesh take a fiftieth of their time; short ones stay, so that nothing runs into a limit by chance.
 */
function hasty(): Environment {
  const environment = realEnvironment();
  const {clock} = environment;
  const scale = (ms: number): number => (ms > 5000 ? ms / 50 : ms);
  return {...environment, clock: {...clock, after: (ms, run) => clock.after(scale(ms), run)}};
}

test('a port that is taken is stepped over, for both address families alike', async t => {
  const blocker = createServer().listen({port: 0, host: '::', ipv6Only: true});
  await once(blocker, 'listening');
  t.teardown(() => blocker.close());
  const address = blocker.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const {start} = await place(t);
  const mesh = await start('node', {port}, 'everywhere');
  const ports = new Set(mesh.addresses().map(each => Number(/\/tcp\/(\d+)/u.exec(each)?.[1])));
  t.is(ports.size, 1);
  t.true(portOf(mesh) > port && portOf(mesh) <= port + 50);
});

test('how far away a peer is, is told as soon as it is admitted', async t => {
  const {start} = await place(t);
  const a = await serve(await start('a'));
  const b = await serve(await start('b', {peers: [`127.0.0.1:${portOf(a.mesh)}`]}));
  for (const [self, peer] of [
    [a, b],
    [b, a],
  ] as const) {
    await until('it is told', () => self.links.get(peer.mesh.self)?.roundTripMs !== undefined);
    t.true((self.mesh.links()[0]?.roundTripMs ?? 0) > 0);
  }
});

test('two nodes that name each other and dial at once end up with one link, and gossip flows over it', async t => {
  const {start} = await place(t);
  for (let round = 0; round < 5; round += 1) {
    const second = await steadyPort();
    const a = await start(`a ${round}`, {peers: [`127.0.0.1:${second}`]});
    const b = await start(`b ${round}`, {peers: [`127.0.0.1:${portOf(a)}`], listen: [`/ip4/127.0.0.1/tcp/${second}`]});
    const [seenA, seenB] = await Promise.all([serve(a), serve(b)]);
    await until('they meet', () => isLinked(seenA, seenB));
    await until('gossip flows', async () => {
      await a.publish(await a.sign(text('news')));
      return seenB.judged.length > 0;
    });
    t.is(a.links().length, 1);
    await Promise.all([a, b].map(async mesh => mesh[Symbol.asyncDispose]()));
  }
});

test('a peer that restarts at the same address is back by itself, as the same node', async t => {
  const {start} = await place(t);
  const port = await steadyPort();
  const first = await start('b', {listen: [`/ip4/127.0.0.1/tcp/${port}`]});
  const a = await serve(await start('a', {peers: [`127.0.0.1:${port}`]}));
  const b = await serve(first);
  await until('they meet', () => isLinked(a, b));
  await first[Symbol.asyncDispose]();
  await until('the loss is noticed', () => a.links.size === 0);
  const again = await serve(await start('b', {listen: [`/ip4/127.0.0.1/tcp/${port}`]}));
  t.is(again.mesh.self, first.self);
  await until('they meet again', () => isLinked(a, again));
});

test('peers that are named by one node only learn of each other by it', async t => {
  const {start} = await place(t);
  const hub = await start('hub');
  const peers = [`127.0.0.1:${portOf(hub)}`];
  const [middle, a, b] = await Promise.all([
    serve(hub),
    start('a', {peers}).then(serve),
    start('b', {peers}).then(serve),
  ]);
  await until('all meet', () => isLinked(a, b) && isLinked(a, middle) && isLinked(b, middle));
  t.is(a.links.get(b.mesh.self)?.address, `127.0.0.1:${portOf(b.mesh)}`);
});

test('S60: a node of another mesh is named on both sides, with what would let it in', async t => {
  const {start} = await place(t);
  const a = await serve(await start('a'));
  const b = await serve(await start('b', {mesh: 'office', peers: [`127.0.0.1:${portOf(a.mesh)}`]}));
  await until('both know', () => a.links.size > 0 && b.links.size > 0);
  const link = a.mesh.links()[0];
  t.false(link?.admitted);
  t.regex(link?.refusal ?? '', /"b" belongs to mesh "office"; set the same mesh\.name/u);
  t.regex(b.mesh.links()[0]?.refusal ?? '', /"a" belongs to mesh "home"/u);
});

test('S60: a libp2p node that is not hearsay gets no record, no inventory and no slot, whatever it tries', async t => {
  const {start} = await place(t);
  const a = await serve(await start('a'));
  const record = await a.mesh.sign(text('secret'));
  a.newest = [{record, ageMs: 0}];
  const topic = '/hearsay/records/1';
  const stranger = await createLibp2p({
    addresses: {listen: loopback},
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    services: {identify: identify(), pubsub: gossipsub({emitSelf: false, globalSignaturePolicy: 'StrictNoSign'})},
  });
  t.teardown(async () => stranger.stop());
  const heard: unknown[] = [];
  stranger.services.pubsub.addEventListener('message', ({detail}) => void heard.push(detail));
  stranger.services.pubsub.subscribe(topic);
  const connection = await stranger.dial(multiaddr(a.mesh.addresses()[0] ?? ''));
  for (const protocol of ['/hearsay/inventory/1', '/hearsay/lease/1']) {
    const stream = await connection.newStream(protocol);
    await until(`${protocol} is reset`, () => stream.status !== 'open' && stream.status !== 'closing');
  }
  for (let round = 0; round < 20; round += 1) {
    await a.mesh.publish(await a.mesh.sign(text(`secret ${round}`)));
    await until('a moment passes', async () => new Promise<boolean>(resolve => void setTimeout(resolve, 50, true)));
  }
  t.deepEqual(heard, []);
  t.deepEqual(a.offers, []);
  t.false(a.mesh.links().some(({admitted}) => admitted));
});

test('whoever connects and says nothing is let go', async t => {
  const {start} = await place(t);
  const a = await serve(await start('a', {}, hasty()));
  const silent = await createLibp2p({
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
  });
  t.teardown(async () => silent.stop());
  const connection = await silent.dial(multiaddr(a.mesh.addresses()[0] ?? ''));
  await until('the connection is gone', () => connection.status !== 'open');
  t.deepEqual(a.mesh.links(), []);
});

test('a slot for which no request comes is given back', async t => {
  const {start} = await place(t);
  const b = await serve(await start('b', {}, hasty()));
  const a = await serve(await start('a', {peers: [`127.0.0.1:${portOf(b.mesh)}`]}));
  await until('they meet', () => isLinked(a, b));
  const held = leaseOf(async () => responseOf(chunks('1')));
  b.offer = async () => held.lease;
  const lease = await accept(a, b);
  await until('the worker takes its slot back', held.disposed);
  const error = await t.throwsAsync(lease.run(text('{}'), never), {instanceOf: Fault});
  t.is(error.code, 'PEER_FAILED');
});

test('a reader that takes its time gets the end of an answer too, though the worker has long closed', async t => {
  const {start} = await place(t);
  const b = await serve(await start('b'));
  const a = await serve(await start('a', {peers: [`127.0.0.1:${portOf(b.mesh)}`]}));
  await until('they meet', () => isLinked(a, b));
  const held = leaseOf(async () => responseOf(inParts()));
  b.offer = async () => held.lease;
  await using lease = await accept(a, b);
  const {body} = await lease.run(text('{}'), never);
  const reader = body[Symbol.asyncIterator]();
  let read = (await reader.next()).value?.length ?? 0;
  await until('the worker is through', held.disposed);
  await new Promise<void>(resolve => void setTimeout(resolve, 100)); // and its end has crossed
  for (let next = await reader.next(); next.done !== true; next = await reader.next()) read += next.value.length;
  t.is(read, 300_000);
});

test('a body of another size than was offered is refused, and the slot is given back', async t => {
  const {start} = await place(t);
  const b = await serve(await start('b'));
  const a = await serve(await start('a', {peers: [`127.0.0.1:${portOf(b.mesh)}`]}));
  await until('they meet', () => isLinked(a, b));
  const held = leaseOf(async () => responseOf(chunks('1')));
  b.offer = async () => held.lease;
  await using lease = await accept(a, b, {bodyBytes: 3});
  const error = await t.throwsAsync(lease.run(text('{}'), never), {instanceOf: Fault});
  t.is(error.code, 'BAD_REQUEST');
  await until('the worker takes its slot back', held.disposed);
});

test('a thousand requests one after the other leave no stream behind', async t => {
  const {start} = await place(t);
  const b = await serve(await start('b'));
  const a = await serve(await start('a', {peers: [`127.0.0.1:${portOf(b.mesh)}`]}));
  await until('they meet', () => isLinked(a, b));
  b.offer = async () => leaseOf(async () => responseOf(chunks('1', '2'))).lease;
  for (let index = 0; index < 1100; index += 1) {
    await using lease = await accept(a, b);
    const response = await lease.run(text('{}'), never);
    if (index % 100 === 0) t.deepEqual(await readAll(response.body), text('12'));
    else await readAll(response.body);
  }
});

test('a node with fifty runs under way leaves within two seconds, and every asking node sees a failure', async t => {
  const {start} = await place(t);
  const a = await serve(await start('a'));
  const b = await serve(await start('b', {peers: [`127.0.0.1:${portOf(a.mesh)}`]}));
  await until('they meet', () => isLinked(a, b));
  b.offer = async () => leaseOf(async (_body, signal) => responseOf(silence(signal))).lease;
  const leases = await Promise.all(Array.from({length: 50}, async () => accept(a, b)));
  const runs = leases.map(async lease => lease.run(text('{}'), never).then(async ({body}) => readAll(body)));
  const results = Promise.allSettled(runs);
  const sinceMs = performance.now();
  await b.mesh[Symbol.asyncDispose]();
  t.true(performance.now() - sinceMs < 5 * 2000, 'five times the time, as the machine has others to serve');
  t.true((await results).every(({status}) => status === 'rejected'));
});

/**
 * Slowly enough that every buffer on the way fills, from the reader back, and the last parts have to wait in the
 * stream.
 */
async function* inParts(): AsyncGenerator<Uint8Array> {
  for (let part = 0; part < 12; part += 1) {
    yield new Uint8Array(25_000);
    await new Promise<void>(resolve => void setTimeout(resolve, 20));
  }
}

async function* silence(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  yield text('1');
  await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()));
}
