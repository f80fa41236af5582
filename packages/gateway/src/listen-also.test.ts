import {once} from 'node:events';
import {connect, createServer} from 'node:net';
import type {AddressInfo, Socket} from 'node:net';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {steadyPort} from '../../../test/support/steady-port.ts';
import {until} from '../../../test/support/until.ts';
import {startGateway} from './start-gateway.ts';
import {realEnvironment} from '../../../test/support/environment.ts';
import {scriptedCluster, statusReport} from '../../../test/support/scripted-cluster.ts';

async function open(t: ExecutionContext, alsoPort: number, openFilesMax?: number) {
  const warnings: string[] = [];
  const log = (level: string, message: string): void => void (level === 'warn' && warnings.push(message));
  const cluster = scriptedCluster(() => Promise.reject(new Error('not asked')));
  const gateway = await startGateway(
    {host: '127.0.0.1', port: 0, anyPort: false, alsoPort, openFilesMax},
    {...realEnvironment(), log, cluster, status: statusReport},
  );
  t.teardown(() => gateway[Symbol.asyncDispose]());
  return {gateway, warnings};
}

/** A port, and the listener that has it until closed. */
async function takePort() {
  const listener = createServer();
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address: AddressInfo | string | null = listener.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return {port: address.port, listener};
}

test('a further port is served like the first one, and closes with the gateway', async t => {
  const port = await steadyPort();
  const {gateway, warnings} = await open(t, port);
  t.is(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'Ollama is running');
  t.is((await fetch(`http://127.0.0.1:${port}/`, {headers: {origin: 'https://evil.example'}})).status, 403);
  t.is((await fetch(gateway.url)).status, 200);
  await gateway[Symbol.asyncDispose]();
  await t.throwsAsync(fetch(`http://127.0.0.1:${port}/`));
  t.deepEqual(warnings, []);
});

test('a further port that is taken is a warning, and the gateway runs without it', async t => {
  const {port, listener} = await takePort();
  t.teardown(() => void listener.close());
  const {gateway, warnings} = await open(t, port);
  t.is((await fetch(gateway.url)).status, 200);
  t.regex(
    warnings.join('\n'),
    new RegExp(`port ${port} is not served, perhaps because Ollama itself runs: .*EADDRINUSE`, 'u'),
  );
});

test('all ports together take no more connections than the system has files for, and the owner is told', async t => {
  const port = await steadyPort();
  const {gateway, warnings} = await open(t, port, 0); // as few as a gateway takes
  const ports = [Number(new URL(gateway.url).port), port];
  const sockets: Socket[] = [];
  t.teardown(() => sockets.forEach(socket => socket.destroy()));
  for (let count = 0; count < 24; count += 1) {
    const socket = connect(ports[count % 2] ?? 0, '127.0.0.1');
    socket.on('error', () => {}); // some are turned away
    socket.resume();
    sockets.push(socket);
    await once(socket, 'connect');
  }
  const kept = (): number => sockets.filter(({destroyed}) => !destroyed).length;
  await until('the rest is turned away', () => kept() === 16);
  await until('the owner is told', () => warnings.length > 0);
  t.deepEqual(
    warnings.map(text => text.split(':')[0]),
    ['more than 16 connections to the gateway'],
  );
  for (const socket of sockets) socket.destroy();
  await until('there is room again', async () => (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined))?.ok);
  t.pass();
});
