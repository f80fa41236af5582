import {once} from 'node:events';
import {mkdir} from 'node:fs/promises';
import {createServer} from 'node:http';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {steadyPort} from '../../../test/support/steady-port.ts';
import {temporaryFolder, testEngine, tinyModel} from '../../../test/support/engine-trial.ts';
import {LlamaServer} from './llama-server.ts';
import type {LaunchSettings} from './llama-server.ts';

const settings = {slots: 1, contextMax: 512, threads: 1, cacheRamMiB: 0, extraArguments: []};

/** Somebody else's HTTP server, which calls itself healthy. */
async function foreignPort(t: ExecutionContext): Promise<number> {
  const server = createServer((request, response) => {
    response.statusCode = request.url === '/health' ? 200 : 401;
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function startServer(t: ExecutionContext, choosePort: () => Promise<number>): Promise<LlamaServer> {
  const runFolder = join(await temporaryFolder(t), 'run');
  await mkdir(runFolder);
  const launch: LaunchSettings = {
    command: testEngine(),
    leadingArguments: [],
    runFolder,
    variables: process.env,
    choosePort,
  };
  const server = new LlamaServer(await tinyModel('tiny-count-F16'), settings, launch, realEnvironment());
  t.teardown(async () => {
    server.kill();
    await server.exited;
  });
  return server;
}

test('R85: when another process has taken the chosen port, another port is used', async t => {
  const taken = await foreignPort(t);
  const ports = [taken, taken];
  let choices = 0;
  const server = await startServer(t, async () => {
    choices += 1;
    return ports.shift() ?? steadyPort();
  });
  t.like(await server.ready(), {context: 512, sees: false, callsTools: false});
  t.is(choices, 3);
  const body = Buffer.from(JSON.stringify({messages: [{role: 'user', content: 'x'}], max_tokens: 2}));
  const response = await server.call({endpoint: '/v1/chat/completions', body}, new AbortController().signal).response;
  t.is(response.status, 200);
  t.regex(Buffer.concat(await Array.fromAsync(response.body)).toString(), / 1 2/u);
});

test('R85: a start gives up when every port is taken, and is never ready by the answers of another process', async t => {
  const taken = await foreignPort(t);
  const server = await startServer(t, async () => taken);
  t.is(await server.ready(), undefined);
  const exit = await server.exited;
  t.like(exit, {portTaken: true, final: false});
  t.regex(exit.reason, /couldn't bind/u);
});

test('a server that is stopped before it has a port starts no process', async t => {
  const port = Promise.withResolvers<number>();
  const server = await startServer(t, async () => port.promise);
  server.terminate('it was stopped');
  port.resolve(await steadyPort());
  t.is((await server.exited).reason, 'it was stopped');
  t.is(server.processId, undefined);
});
