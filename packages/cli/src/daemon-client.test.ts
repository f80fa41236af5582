import {once} from 'node:events';
import {createServer} from 'node:http';
import {createServer as createNetServer} from 'node:net';
import type {AddressInfo, Server} from 'node:net';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault, toNodeId} from '@hearsay/core';
import {steadyPort} from '../../../test/support/steady-port.ts';
import {DaemonClient} from './daemon-client.ts';
import {engineOutcomesSchema} from './control-reports.ts';
import {enginesSchema, nodesSchema, statusSchema} from './daemon-reports.ts';
import {exitCodeOf} from './exit-codes.ts';
import {daemonUrl} from './query-commands.ts';

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** A server that gives every path its reply, and all other paths the last one. */
async function serverWith(t: ExecutionContext, replies: Readonly<Record<string, Reply>>): Promise<string> {
  const server = createServer((request, response) => {
    const {status, type, body} = replies[request.url ?? ''] ??
      replies['*'] ?? {status: 404, type: 'text/plain', body: ''};
    response.writeHead(status, {'content-type': type}).end(body);
  });
  t.teardown(() => server.close());
  return urlOf(server);
}

async function urlOf(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address: AddressInfo | string | null = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

const json = (status: number, value: unknown): Reply => ({
  status,
  type: 'application/json',
  body: JSON.stringify(value),
});
const html404: Reply = {status: 404, type: 'text/html', body: '<h1>Not Found</h1>'};

const status = {
  id: toNodeId('12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp'),
  name: 'mac',
  version: '0.1.0',
  mesh: 'home',
  meshAddresses: [],
  gateway: 'http://127.0.0.1:4327',
  engine: 'llama-server',
  processId: 1,
  uptimeSeconds: 1,
  peers: 0,
  models: 0,
  loaded: 0,
  inFlight: 0,
  dataFolder: '/data',
};

async function failure(t: ExecutionContext, asked: Promise<unknown>): Promise<Fault> {
  const fault = await t.throwsAsync(asked, {instanceOf: Fault});
  return fault ?? new Fault('INTERNAL', 'nothing was thrown');
}

test('R72: an HTML 404 of another server is no hearsay, and not a missing model', async t => {
  const url = await serverWith(t, {'*': html404});
  const fault = await failure(t, new DaemonClient(url).post('/hearsay/v1/stop', {model: 'm'}, engineOutcomesSchema));
  t.is(exitCodeOf(fault.code), 4);
  t.regex(fault.message, /not hearsay \(HTTP 404, text\/html\)/u);
  t.true(fault.message.includes(url));
});

test('R72: nor is a JSON 404 in the form of llama-server', async t => {
  const url = await serverWith(t, {'*': json(404, {error: {code: 404, message: 'File Not Found'}})});
  const fault = await failure(t, new DaemonClient(url).post('/hearsay/v1/stop', {model: 'm'}, engineOutcomesSchema));
  t.is(exitCodeOf(fault.code), 4);
});

test('a 200 with something else than a report is no hearsay', async t => {
  for (const reply of [
    json(200, {nodes: [{id: 'x'}]}),
    json(200, []),
    {status: 200, type: 'text/html', body: '<p>hi</p>'},
  ]) {
    const fault = await failure(t, new DaemonClient(await serverWith(t, {'*': reply})).list('/x', nodesSchema));
    t.is(exitCodeOf(fault.code), 4);
  }
});

const meanings: readonly (readonly [number, number])[] = [
  [404, 3],
  [429, 5],
  [503, 5],
  [504, 5],
  [500, 1],
];
for (const [httpStatus, exitCode] of meanings) {
  test(`an error ${httpStatus} of a real daemon keeps its message and ends with ${exitCode}`, async t => {
    const url = await serverWith(t, {
      '/hearsay/v1/status': json(200, status),
      '*': json(httpStatus, {error: {message: 'because', type: 't', code: null}}),
    });
    const fault = await failure(t, new DaemonClient(url).list('/x', nodesSchema));
    t.is(fault.message, 'because');
    t.is(exitCodeOf(fault.code), exitCode);
  });
}

test('where nobody listens the message names the address and how to start a daemon', async t => {
  const url = `http://127.0.0.1:${await steadyPort()}`;
  const fault = await failure(t, new DaemonClient(url).list('/x', statusSchema));
  t.is(exitCodeOf(fault.code), 4);
  t.true(fault.message.includes(url) && fault.message.includes('hearsay serve'), fault.message);
});

test('a server that sends elsewhere is not followed with a key, but told where it sends', async t => {
  const server = createServer((_, response) => {
    response.writeHead(301, {location: 'https://box.example/hearsay/v1/nodes'}).end();
  });
  t.teardown(() => server.close());
  const fault = await failure(t, new DaemonClient(await urlOf(server), 'key').list('/hearsay/v1/nodes', nodesSchema));
  t.regex(fault.message, /HTTP 301.* to https:\/\/box\.example\/hearsay\/v1\/nodes/u);
  t.is(exitCodeOf(fault.code), 4);
});

test('where a server switches to another protocol nobody waits for an answer', async t => {
  const server = createNetServer(socket => {
    socket
      .on('error', () => {})
      .once('data', () =>
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n'),
      );
  });
  t.teardown(() => server.close());
  const fault = await failure(t, new DaemonClient(await urlOf(server)).list('/x', nodesSchema));
  t.regex(fault.message, /without an answer/u);
  t.is(exitCodeOf(fault.code), 4);
});

test('a report of a newer daemon with more fields, and with none of the optional ones, can be read', async t => {
  const engine = {
    name: 'm',
    digest: `sha256:${'a'.repeat(64)}`,
    sizeBytes: 1,
    processor: 'llama-server',
    context: 1,
    state: 'dreaming',
    node: 'local',
    nodeId: status.id,
    nodeName: 'mac',
    slots: 1,
    busy: 0,
    queued: 0,
    colour: 'red',
  };
  const url = await serverWith(t, {'*': json(200, {engines: [engine], more: 1})});
  const {report, json: said} = await new DaemonClient(url).list('/x', enginesSchema);
  t.like(report.engines[0], {name: 'm', startedSecondsAgo: undefined, failure: undefined});
  t.deepEqual(said, {engines: [engine], more: 1}, '--json prints all that the daemon said');
});

test('--host wins over HEARSAY_HOST, and that over the default', async t => {
  const noFolder = async (): Promise<string> => '/nowhere';
  t.is(await daemonUrl(':1', {HEARSAY_HOST: ':2'}, noFolder), 'http://127.0.0.1:1');
  t.is(await daemonUrl(undefined, {HEARSAY_HOST: ':2'}, noFolder), 'http://127.0.0.1:2');
  t.is(await daemonUrl(undefined, {HEARSAY_HOST: ''}, noFolder), 'http://127.0.0.1:4327');
});
