import {randomUUID} from 'node:crypto';
import {createSocket} from 'node:dgram';
import {once} from 'node:events';
import {setTimeout as sleep} from 'node:timers/promises';
import {generateKeyPair} from '@libp2p/crypto/keys';
import {peerIdFromPrivateKey} from '@libp2p/peer-id';
import {multiaddr} from '@multiformats/multiaddr';
import type {Multiaddr} from '@multiformats/multiaddr';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import type {Log, NodeId} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {until} from '../../../test/support/until.ts';
import {nodeIdOf} from './identity.ts';
import {LanDiscovery, serviceName} from './lan-discovery.ts';

interface Found {
  readonly self: NodeId;
  readonly sightings: {readonly node: NodeId; readonly addresses: readonly string[]}[];
}

/** Not 5353, so that nothing of the network outside is heard, and nothing is said there. */
const dnsPort = 40_353;

async function search(t: ExecutionContext, mesh: string, port: number): Promise<Found> {
  const self = nodeIdOf(peerIdFromPrivateKey(await generateKeyPair('Ed25519')));
  const found: Found = {self, sightings: []};
  const discovery = new LanDiscovery(
    {
      mesh,
      self,
      port: dnsPort,
      peers: () => 0,
      listening: () => [multiaddr(`/ip4/127.0.0.1/tcp/${port}`), multiaddr(`/ip6/::1/tcp/${port}`)],
      sighted: (node, addresses) => void found.sightings.push({node, addresses: addresses.map(String)}),
      sightedSelf: () => {},
    },
    realEnvironment(),
  );
  t.teardown(() => discovery[Symbol.dispose]());
  return found;
}

test('the tag of a mesh is a DNS label, readable where that is possible, and differs for each name', t => {
  t.is(serviceName('home'), '_hearsay-home._udp.local');
  const names = ['home', 'Home', 'home lab', 'büro', 'a.b', '', '-x', 'x'.repeat(200), `${'x'.repeat(199)}y`];
  const tags = names.map(serviceName);
  t.is(new Set(tags).size, names.length);
  for (const tag of tags) t.regex(tag, /^_hearsay-[a-z0-9][a-z0-9-]{0,53}\._udp\.local$/u);
});

test('nodes of one mesh see each other on loopback, at the addresses of that interface, again and again', async t => {
  const mesh = `test-${randomUUID()}`;
  const a = await search(t, mesh, 1001);
  const b = await search(t, mesh, 1002);
  await until('both see each other', () => a.sightings.length > 0 && b.sightings.length > 0);
  t.deepEqual(a.sightings[0], {node: b.self, addresses: ['/ip4/127.0.0.1/tcp/1002']});
  t.deepEqual(b.sightings[0], {node: a.self, addresses: ['/ip4/127.0.0.1/tcp/1001']});
  const before = a.sightings.length;
  await until('one is seen again', () => a.sightings.length > before);
  t.true([...a.sightings, ...b.sightings].every(({node}) => node === a.self || node === b.self));
});

test('R45: questions and answers come from the port of multicast DNS, as whatever passes them on demands', async t => {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const listener = createSocket({type: 'udp4', reuseAddr: true});
  t.teardown(() => listener.close());
  const heard: {readonly isAnswer: boolean; readonly port: number}[] = [];
  listener.on('message', (message, {port}) => {
    if (message.includes(mesh)) heard.push({isAnswer: ((message[2] ?? 0) & 0x80) !== 0, port});
  });
  listener.bind(dnsPort, '0.0.0.0');
  await once(listener, 'listening');
  listener.addMembership('224.0.0.251', '127.0.0.1');
  await Promise.all([search(t, mesh, 1006), search(t, mesh, 1007)]);
  const has = (isAnswer: boolean): boolean => heard.some(one => one.isAnswer === isAnswer);
  await until('there was a question and an answer', () => has(true) && has(false));
  t.true(heard.every(({port}) => port === dnsPort));
});

test('nodes of another mesh are not even seen', async t => {
  const mesh = `test-${randomUUID()}`;
  const stranger = await search(t, `test-${randomUUID()}`, 1003);
  const a = await search(t, mesh, 1004);
  const b = await search(t, mesh, 1005);
  await until('the members see each other', () => a.sightings.length > 1 && b.sightings.length > 1);
  t.deepEqual(stranger.sightings, []);
});

test('a node that has met others asks ever more rarely, and one that is alone keeps asking', async t => {
  for (const [isAlone, expected] of [
    [false, [5000, 10_000, 20_000, 30_000, 30_000]],
    [true, [5000, 5000, 5000, 5000, 5000]],
  ] as const) {
    const environment = realEnvironment();
    const {clock} = environment;
    const waits: number[] = [];
    const after = (ms: number, run: () => void): Disposable => {
      if (ms >= 5000) waits.push(ms);
      return clock.after(ms / 200, run);
    };
    const self = nodeIdOf(peerIdFromPrivateKey(await generateKeyPair('Ed25519')));
    const ignore = (): void => {};
    const how = {
      peers: () => (isAlone ? 0 : 1),
      listening: () => [],
      sighted: ignore,
      sightedSelf: ignore,
      port: dnsPort,
    };
    using _discovery = new LanDiscovery(
      {mesh: `test-${randomUUID()}`, self, ...how},
      {...environment, clock: {...clock, after}},
    );
    await until('it has asked five times', () => waits.length >= 5);
    for (const [index, ms] of expected.entries()) {
      const waited = waits[index] ?? 0;
      t.true(waited > 0.9 * ms && waited < 1.1 * ms, `${waited} ms instead of ${ms}`);
    }
  }
});

interface Crowd {
  readonly nodes: number;
  /** That each of them has met. */
  readonly peers: number;
  readonly port: number;
  /** How much time passes before all of them hear what one has said. */
  readonly stepMs: number;
}

/** Many nodes on loopback, and a count of what they say. Their time stands still while this process does. */
async function crowd(t: ExecutionContext, {nodes, peers, port, stepMs}: Crowd) {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const environment = realEnvironment();
  const clock = manualClock();
  const pass = async (ms: number): Promise<void> => {
    for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
      await clock.advance(stepMs);
      await sleep(1);
    }
  };
  const listener = createSocket({type: 'udp4', reuseAddr: true});
  t.teardown(() => listener.close());
  const said = {questions: 0, answers: 0, sightings: 0};
  listener.on('message', (message, {address}) => {
    if (address !== '127.0.0.1' || !message.includes(mesh)) return;
    if (((message[2] ?? 0) & 0x80) === 0) said.questions += 1;
    else said.answers += 1;
  });
  listener.bind(port, '0.0.0.0');
  await once(listener, 'listening');
  listener.addMembership('224.0.0.251', '127.0.0.1');
  for (let index = 0; index < nodes; index += 1) {
    const self = nodeIdOf(peerIdFromPrivateKey(await generateKeyPair('Ed25519')));
    const listening = (): Multiaddr[] => [multiaddr(`/ip4/127.0.0.1/tcp/${2000 + index}`)];
    const how = {mesh, self, port, listening, sightedSelf: () => {}, peers: () => peers};
    const sighted = (): void => void (said.sightings += 1);
    const discovery = new LanDiscovery({...how, sighted}, {...environment, clock});
    t.teardown(() => discovery[Symbol.dispose]());
  }
  await pass(15_000); // the first questions, ever more rarely
  Object.assign(said, {questions: 0, answers: 0, sightings: 0});
  return {said, pass, nowMs: () => clock.monotonicMs()};
}

test('however many nodes there are, a network hears one question a period, and each answer is read once', async t => {
  const nodes = 8;
  const {said, pass, nowMs} = await crowd(t, {nodes, peers: 1, port: 40_355, stepMs: 100});
  const startedMs = nowMs();
  await until('it was asked and answered', async () => {
    await pass(1000);
    return said.questions >= 3 && said.answers >= 2 * nodes;
  });
  const periods = (nowMs() - startedMs) / 30_000;
  t.true(
    said.questions < (nodes / 2) * (periods + 1),
    `${said.questions} questions in ${periods} periods of ${nodes} nodes`,
  );
  const {answers, sightings} = said;
  t.true(sightings <= (nodes - 1) * (answers + nodes), `${sightings} sightings of ${answers} answers`);
});

test('of a mesh where everybody has met many, some answer a question and not all', async t => {
  const nodes = 24;
  const {said, pass} = await crowd(t, {nodes, peers: 1000, port: 40_356, stepMs: 10});
  await until('it was asked and answered', async () => {
    await pass(100);
    return said.questions >= 1 && said.answers >= 8;
  });
  await pass(500); // everybody who wants to answer has done so
  t.true(said.answers < ((said.questions + 1) * nodes) / 2, `${said.answers} answers to ${said.questions} questions`);
});

test('R54: a network that cannot be searched is told once, with the reason, and the node lives on', async t => {
  const port = 40_354;
  const blocker = createSocket('udp4').bind(port);
  await once(blocker, 'listening');
  const warnings: string[] = [];
  const environment = realEnvironment();
  const log: Log = (level, message, fields) => {
    if (level === 'warn' && message.includes(' 127.0.0.1;')) warnings.push(`${message} ${String(fields?.['reason'])}`);
  };
  const {clock} = environment;
  const quick = {...clock, after: (ms: number, run: () => void) => clock.after(ms / 50, run)};
  const sighted = (): void => t.fail();
  const self = nodeIdOf(peerIdFromPrivateKey(await generateKeyPair('Ed25519')));
  using _discovery = new LanDiscovery(
    {mesh: 'home', self, peers: () => 0, listening: () => [], sighted, sightedSelf: sighted, port},
    {...environment, clock: quick, log},
  );
  await until('it is told', () => warnings.length > 0);
  await new Promise<void>(resolve => void setTimeout(resolve, 500)); // eight rescans
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /name them in mesh\.peers instead .*EADDRINUSE/u);
  blocker.close();
});
