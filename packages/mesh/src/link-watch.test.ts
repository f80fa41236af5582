import {mkdtemp, rm} from 'node:fs/promises';
import {connect, createServer} from 'node:net';
import type {AddressInfo, Socket} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import type {Fault, Mesh} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {accept, isLinked, leaseOf, never, readAll, responseOf, serve} from '../../../test/support/mesh-trial.ts';
import {until} from '../../../test/support/until.ts';
import {LinkWatch} from './link-watch.ts';
import {startMesh} from './start-mesh.ts';

/** A connection on which a test lets something come. */
function connection(): {link: Parameters<LinkWatch['watch']>[0]; message: () => void; close: () => void} {
  const target = new EventTarget();
  return {
    link: {addEventListener: (name: string, listener: () => void) => target.addEventListener(name, listener)},
    message: () => void target.dispatchEvent(new Event('message')),
    close: () => void target.dispatchEvent(new Event('close')),
  };
}

test('R43: a connection is lost six seconds after the last byte, and not before', async t => {
  const clock = manualClock();
  const {link, message} = connection();
  const lost: Fault[] = [];
  let asked = 0;
  new LinkWatch(clock).watch(link, {ask: () => (asked += 1), lost: fault => void lost.push(fault)});
  for (let second = 0; second < 60; second += 2) {
    await clock.advance(1900);
    message();
  }
  t.is(asked, 0, 'a peer that is heard is not asked');
  await clock.advance(5400);
  t.deepEqual(lost, []);
  t.is(asked, 2);
  await clock.advance(600);
  t.is(lost[0]?.code, 'PEER_FAILED');
  await clock.advance(60_000);
  t.is(lost.length, 1);
});

test('fifty connections wake a node no more often than one, each is lost for itself, and without any it sleeps', async t => {
  const virtual = manualClock();
  let woken = 0;
  const counted = (run: () => void) => (): void => {
    woken += 1;
    run();
  };
  const watch = new LinkWatch({...virtual, after: (ms, run) => virtual.after(ms, counted(run))});
  const lost: number[] = [];
  const links = Array.from({length: 50}, () => connection());
  for (const [index, {link}] of links.entries()) {
    watch.watch(link, {ask: () => {}, lost: () => void lost.push(index)});
    await virtual.advance(10);
  }
  for (let second = 0; second < 10; second += 1) {
    for (const {message} of links.slice(1)) message();
    await virtual.advance(1000);
  }
  t.true(woken <= 22, `woken ${woken} times in 10.5 s`);
  t.deepEqual(lost, [0]);
  for (const {close} of links) close();
  const before = woken;
  await virtual.advance(60_000);
  t.is(woken, before);
});

test('time in which this node itself stands still is no silence of its peers', t => {
  const due: (() => void)[] = [];
  const clock = {...manualClock(), after: (_ms: number, run: () => void) => (due.push(run), {[Symbol.dispose]() {}})};
  const {link} = connection();
  const lost: Fault[] = [];
  new LinkWatch(clock).watch(link, {ask: () => {}, lost: fault => void lost.push(fault)});
  // However late a look comes, it is one look.
  for (let look = 0; look < 11; look += 1) due.shift()?.();
  t.deepEqual(lost, []);
  due.shift()?.();
  t.is(lost.length, 1);
});

test('answers that fill a slow link for longer than a ping may take do not end the connection', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-slow-'));
  t.teardown(async () => rm(folder, {recursive: true}));
  const worker = await serve(await start(t, join(folder, 'worker'), []));
  const port = await slowLink(t, Number(/\/tcp\/(\d+)/u.exec(worker.mesh.addresses()[0] ?? '')?.[1]), 200_000);
  const asker = await serve(await start(t, join(folder, 'asker'), [`127.0.0.1:${port}`]));
  await until('both meet', () => isLinked(asker, worker));
  worker.offer = async () => leaseOf(async () => responseOf(flood())).lease;
  const bodies = await Promise.all(
    Array.from({length: 8}, async () => {
      const lease = await accept(asker, worker);
      return readAll((await lease.run(new Uint8Array(2), never)).body);
    }),
  );
  t.deepEqual(
    bodies.map(({length}) => length),
    bodies.map(() => floodBytes),
  );
});

const floodBytes = 256 * 1024;

/** As fast as it is taken. */
async function* flood(): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < floodBytes; sent += 16_384) yield new Uint8Array(16_384);
}

async function start(t: ExecutionContext, identityFile: string, peers: readonly string[]): Promise<Mesh> {
  const settings = {mesh: 'home', identityFile, nodeName: 'slow', port: 0, defaultPort: 4328, discovery: false};
  const mesh = await startMesh({...settings, listen: ['/ip4/127.0.0.1/tcp/0'], peers}, realEnvironment());
  t.teardown(async () => mesh[Symbol.asyncDispose]());
  return mesh;
}

/** Passes everything on, but back from the port only so many bytes a second. */
async function slowLink(t: ExecutionContext, port: number, bytesPerSecond: number): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer(near => {
    const far = connect(port, '127.0.0.1');
    near.pipe(far);
    void throttle(far, near, bytesPerSecond);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket
        .on('error', () => {})
        .on('close', () => {
          near.destroy();
          far.destroy();
        });
    }
  });
  await new Promise<void>(ready => void server.listen(0, '127.0.0.1', ready));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address: string | AddressInfo | null = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

async function throttle(from: Socket, to: Socket, bytesPerSecond: number): Promise<void> {
  try {
    for await (const chunk of from) {
      to.write(chunk);
      await sleep((1000 * chunk.length) / bytesPerSecond);
    }
    to.end();
  } catch {
    to.destroy();
  }
}
