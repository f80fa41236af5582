import {once} from 'node:events';
import {createServer} from 'node:http';
import type {IncomingMessage, ServerResponse} from 'node:http';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault} from '@hearsay/core';
import {until} from '../../../test/support/engine-trial.ts';
import {LlamaClient} from './llama-client.ts';

const never = new AbortController().signal;
const body = Buffer.from('{}');

/** A client of a server that handles the n-th request in the n-th way, and the last way from then on. */
async function clientOf(
  t: ExecutionContext,
  ...ways: readonly ((request: IncomingMessage, response: ServerResponse) => void)[]
): Promise<{client: LlamaClient; requests: IncomingMessage[]}> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    const way = ways[Math.min(requests.length, ways.length - 1)];
    requests.push(request);
    request.resume().on('end', () => way?.(request, response));
    request.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const explain = async (cause: unknown): Promise<Fault> => new Fault('ENGINE_FAILED', 'explained', {cause});
  const client = new LlamaClient({port, apiKey: 'secret', explain});
  t.teardown(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  return {client, requests};
}

const answer = (_: IncomingMessage, response: ServerResponse): void => void response.end('whole');
const cutConnection = (request: IncomingMessage): void => void request.socket.destroy();

async function textOf(client: LlamaClient): Promise<string> {
  const call = client.call({endpoint: '/v1/completions', body}, never);
  const response = await call.response;
  const text = Buffer.concat(await Array.fromAsync(response.body)).toString();
  await call.closed();
  return text;
}

test('C19, C34: requests carry our key, the type and length of the body, and nothing else of interest', async t => {
  const {client, requests} = await clientOf(t, answer);
  t.is(await textOf(client), 'whole');
  const {host: _, ...headers} = requests[0]?.headers ?? {};
  t.deepEqual(headers, {
    authorization: 'Bearer secret',
    'content-type': 'application/json',
    'content-length': '2',
    connection: 'keep-alive',
  });
});

test('a kept connection that turns out to be closed costs a request nothing', async t => {
  const {client, requests} = await clientOf(t, answer, cutConnection, answer);
  t.is(await textOf(client), 'whole');
  t.is(await textOf(client), 'whole');
  t.is(requests.length, 3);
  t.is(requests[0]?.socket, requests[1]?.socket, 'the second request reused the connection');
});

test('a request is sent again only once, and never on account of a fresh connection', async t => {
  const fresh = await clientOf(t, cutConnection);
  await t.throwsAsync(textOf(fresh.client), {name: 'Fault', message: 'explained'});
  t.is(fresh.requests.length, 1);

  const twice = await clientOf(t, answer, cutConnection);
  await textOf(twice.client);
  await t.throwsAsync(textOf(twice.client), {name: 'Fault', message: 'explained'});
  t.is(twice.requests.length, 3);
});

test('a cut answer is a fault, never a clean end', async t => {
  const {client} = await clientOf(t, (request, response) => {
    response.write('half', () => request.socket.destroy());
  });
  const call = client.call({endpoint: '/v1/completions', body}, never);
  const response = await call.response;
  await t.throwsAsync(Array.fromAsync(response.body), {name: 'Fault', message: 'explained'});
  await call.closed();
});

test('what came before an answer was cut is read, however late', async t => {
  const {client} = await clientOf(t, (request, response) => {
    response.write('one ');
    response.write('two', () => request.socket.destroy());
  });
  const call = client.call({endpoint: '/v1/completions', body}, never);
  const response = await call.response;
  await call.closed();
  let said = '';
  const reading = async (): Promise<void> => {
    for await (const chunk of response.body) said += Buffer.from(chunk).toString();
  };
  await t.throwsAsync(reading, {message: 'explained'});
  t.is(said, 'one two');
});

test('a cut answer that nobody reads does no harm', async t => {
  const {client} = await clientOf(t, (request, response) => {
    response.write('half', () => request.socket.destroy());
  });
  const call = client.call({endpoint: '/v1/completions', body}, never);
  t.is((await call.response).status, 200);
  await t.notThrowsAsync(call.closed());
});

test('an abort closes the connection at once, before the head and in the body', async t => {
  for (const way of [() => {}, (_: IncomingMessage, response: ServerResponse) => void response.write('half')]) {
    const {client, requests} = await clientOf(t, way);
    const abort = new AbortController();
    const call = client.call({endpoint: '/v1/completions', body}, abort.signal);
    const reading = (async () => {
      const response = await call.response;
      for await (const _chunk of response.body);
    })();
    await until('the request', () => requests.length === 1);
    abort.abort(new Error('gone'));
    await t.throwsAsync(reading, {message: 'gone'});
    await call.closed();
    await until('the close', () => requests[0]?.socket.destroyed);
  }
  t.pass();
});

test('leaving the body early closes the connection', async t => {
  const {client, requests} = await clientOf(t, (_, response) => void response.write('half'));
  const call = client.call({endpoint: '/v1/completions', body}, never);
  const response = await call.response;
  for await (const _chunk of response.body) break;
  await call.closed();
  await until('the close', () => requests[0]?.socket.destroyed);
  t.pass();
});

test('destroying the client cuts what runs', async t => {
  const {client, requests} = await clientOf(t, (_, response) => void response.write('half'));
  const call = client.call({endpoint: '/v1/completions', body}, never);
  const reading = Array.fromAsync((await call.response).body);
  client.destroy();
  await t.throwsAsync(reading, {name: 'Fault', message: 'explained'});
  await until('the close', () => requests[0]?.socket.destroyed);
});
