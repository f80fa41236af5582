import {subscribe, unsubscribe} from 'node:diagnostics_channel';
import {once} from 'node:events';
import {Server} from 'node:http';
import {createServer} from 'node:net';
import type {Server as NetServer} from 'node:net';
import test from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {connectTo, eventually, openGateway, post} from '../../../test/support/open-gateway.ts';
import {chatEvents, scriptedAnswer, scriptedBody} from '../../../test/support/scripted-cluster.ts';
import {scriptedCluster, statusReport} from '../../../test/support/scripted-cluster.ts';
import type {ScriptedCluster} from '../../../test/support/scripted-cluster.ts';
import {startGateway} from './start-gateway.ts';

const body = JSON.stringify({model: 'tiny', stream: true, messages: []});

function answering(): ScriptedCluster {
  return scriptedCluster(() => scriptedAnswer(scriptedBody(chatEvents(['hello']))));
}

function portOf(server: NetServer): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** The first piece of an answer that then waits for ever. */
async function* stuck(): AsyncGenerator<string> {
  yield* chatEvents(['hello']).slice(0, 2);
  await new Promise(() => {});
}

for (const host of ['0.0.0.0', '::', '192.0.2.1']) {
  test(`the gateway does not listen on ${host} as long as there are no keys`, async t => {
    await t.throwsAsync(openGateway(answering(), {host}), {code: 'BAD_CONFIG', message: /127\.0\.0\.1/u});
  });
}

test('the owner may open it to other machines all the same', async t => {
  await using gateway = await openGateway(answering(), {host: '0.0.0.0', insecure: true});
  t.regex(gateway.url, /^http:\/\/127\.0\.0\.1:\d+$/u);
  using client = await connectTo(gateway.url);
  client.socket.write('GET /health HTTP/1.1\r\nHost: spark.example\r\n\r\n');
  t.regex(await client.until(/"status"/u), /^HTTP\/1\.1 200/u);
});

test('a taken port is an error, or the next free one is used', async t => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.teardown(() => other.close());
  const port = portOf(other);
  const message = new RegExp(`port ${port}: another program listens there.*--gateway HOST:PORT`, 'u');
  await t.throwsAsync(openGateway(answering(), {port}), {code: 'BAD_CONFIG', message});
  await using gateway = await openGateway(answering(), {port, anyPort: true});
  t.true(Number(new URL(gateway.url).port) > port);
  t.is((await fetch(gateway.url)).status, 200);
});

test('C31: on loopback a foreign Host header is refused with the setting that would allow it', async t => {
  await using gateway = await openGateway(answering(), {hostnames: ['Tunnel.Example']});
  const ask = async (host: string): Promise<string> => {
    using client = await connectTo(gateway.url);
    client.socket.write(`GET /v1/models HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    return await client.until(/"(?:object|error)"/u);
  };
  t.regex(await ask('evil.example'), /^HTTP\/1\.1 403[^]*"message":[^]*gateway\.hostnames/u);
  t.regex(await ask('tunnel.example:443'), /^HTTP\/1\.1 200/u);
});

test('a health check of HTTP/1.0, which names no host, is let in', async t => {
  await using gateway = await openGateway(answering());
  using client = await connectTo(gateway.url);
  client.socket.write('GET /health HTTP/1.0\r\n\r\n');
  t.regex(await client.until(/"status"/u), /^HTTP\/1\.1 200/u);
});

test('what is not HTTP is answered in the shape of all errors, and harms nobody', async t => {
  await using gateway = await openGateway(answering());
  using client = await connectTo(gateway.url);
  client.socket.write('nonsense\r\n\r\n');
  t.regex(await client.until(/bad_http/u), /^HTTP\/1\.1 400/u);
  using other = await connectTo(gateway.url);
  other.socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
  t.regex(await other.until(/bad_http/u), /^HTTP\/1\.1 431/u);
  t.is((await fetch(gateway.url)).status, 200);
});

test('C45: however long an answer takes, no timer of the server ends it', async t => {
  const servers = new Set<Server>();
  const spy = (message: unknown): void => {
    if (typeof message === 'object' && message && 'server' in message && message.server instanceof Server) {
      servers.add(message.server);
    }
  };
  subscribe('http.server.request.start', spy);
  await using gateway = await openGateway(answering());
  await fetch(gateway.url);
  unsubscribe('http.server.request.start', spy);
  const ours = [...servers].filter(server => gateway.url.endsWith(`:${portOf(server)}`));
  t.is(ours.length, 1);
  t.like(ours[0], {timeout: 0, keepAliveTimeout: 72_000, headersTimeout: 60_000, maxRequestsPerSocket: 0});
  t.is(ours[0]?.requestTimeout, 24 * 3_600_000, 'for receiving a request only');
});

test('closing ends a running stream with an error event and returns its body', async t => {
  const running = scriptedBody(stuck());
  const cluster = scriptedCluster(() => scriptedAnswer(running));
  // Who has not let go after a second is cut, but not here.
  const {clock, ...others} = realEnvironment();
  const never = {[Symbol.dispose]: () => {}};
  const after: typeof clock.after = (ms, run) => (ms < 1000 ? clock.after(ms, run) : never);
  const config = {host: '127.0.0.1', port: 0, anyPort: false};
  const deps = {...others, clock: {...clock, after}, cluster, status: statusReport};
  const gateway = await startGateway(config, deps);
  using client = await connectTo(gateway.url);
  client.socket.write(post('/v1/chat/completions', body));
  await client.until(/hello/u);
  t.is(gateway.inFlight(), 1);
  let isClosed = false;
  const closing = gateway[Symbol.asyncDispose]().then(() => (isClosed = true));
  await eventually(() => isClosed, 'it has closed, and cut nobody');
  await closing;
  const text = await client.until(/\r\n0\r\n\r\n$/u);
  t.regex(text, /data: \{"error":\{"message":"node is shutting down"/u);
  t.notRegex(text, /\[DONE\]/u);
  t.true(running.isEnded());
  t.is(gateway.inFlight(), 0);
});

test('closing answers what still waits for a node, and takes nothing new', async t => {
  const cluster = scriptedCluster(() => new Promise(() => {}));
  const gateway = await openGateway(cluster);
  using waiting = await connectTo(gateway.url);
  waiting.socket.write(post('/v1/chat/completions', body));
  await eventually(() => cluster.dispatched.length === 1, 'dispatched');
  const closed = gateway[Symbol.asyncDispose]();
  t.regex(await waiting.until(/shutting down/u), /^HTTP\/1\.1 502/u);
  waiting.socket.write(post('/v1/chat/completions', body));
  await closed;
  t.is(cluster.dispatched.length, 1);
  await t.throwsAsync(fetch(gateway.url));
  await gateway[Symbol.asyncDispose]();
});

test('closing does not wait for idle or half-read connections', async t => {
  const gateway = await openGateway(answering());
  using idle = await connectTo(gateway.url);
  using half = await connectTo(gateway.url);
  half.socket.write(post('/v1/chat/completions', body).slice(0, -5));
  await eventually(() => gateway.inFlight() === 1, 'upload started');
  const started = performance.now();
  await gateway[Symbol.asyncDispose]();
  t.true(performance.now() - started < 20_000, 'a request may take a day to come');
  t.is(gateway.inFlight(), 0);
  t.true(idle.socket.destroyed || (await once(idle.socket, 'close')).length >= 0);
});
