import {once} from 'node:events';
import {createServer} from 'node:net';
import type {AddressInfo} from 'node:net';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {startGateway} from './start-gateway.ts';
import {realEnvironment} from '../../../test/support/environment.ts';
import {scriptedCluster, statusReport} from '../../../test/support/scripted-cluster.ts';

async function open(t: ExecutionContext, alsoPort: number) {
  const warnings: string[] = [];
  const log = (level: string, message: string): void => void (level === 'warn' && warnings.push(message));
  const cluster = scriptedCluster(() => Promise.reject(new Error('not asked')));
  const gateway = await startGateway(
    {host: '127.0.0.1', port: 0, anyPort: false, alsoPort},
    {...realEnvironment(), log, cluster, status: statusReport},
  );
  t.teardown(() => gateway[Symbol.asyncDispose]());
  return {gateway, warnings};
}

/** A port that was free a moment ago, and the listener that has it until closed. */
async function takePort() {
  const listener = createServer();
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address: AddressInfo | string | null = listener.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return {port: address.port, listener};
}

test('a further port is served like the first one, and closes with the gateway', async t => {
  const {port, listener} = await takePort();
  await new Promise(resolve => listener.close(resolve));
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
