import {spawn} from 'node:child_process';
import {mkdtemp, rm} from 'node:fs/promises';
import {Agent, request} from 'node:http';
import {createServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {modelFolder, tinyModel} from '../test/support/models.ts';
import {models} from '../test/support/reports.ts';
import {startDaemon} from '../test/support/daemon.ts';
import {until} from '../test/support/until.ts';
import {prepareTests} from './prepare-tests.ts';

/**
 * `npm run bench:proxy`: what the way through hearsay costs. The same requests go, in turns within one run, straight
 * to a llama-server, through the gateway of the node that has the model, and through one that must cross the mesh.
 * Printed: time to the first byte and what was added to it, and tokens per second. Compare columns, not runs: the
 * machine is shared.
 */

const rounds = Number(process.argv[2] ?? 300);
const model = 'tiny-count-F16';

interface Target {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly agent: Agent;
  readonly firstByteMs: number[];
}

await using cleanup = new AsyncDisposableStack();
const teardown = {teardown: (run: () => unknown): void => cleanup.defer(async () => void (await run()))};
Object.assign(process.env, await prepareTests());

const direct = await startDirect();
const mesh = `bench-${process.pid}`;
const folder = await modelFolder(teardown, `${model}.gguf`);
const variables = {HEARSAY_THREADS: '1', HEARSAY_CONTEXT: '2048'};
const holder = await startDaemon(teardown, {name: 'holder', mesh, models: [folder], variables});
const entry = await startDaemon(teardown, {name: 'entry', mesh});
await until('the entry node knows the model', async () => (await models(entry.url)).length === 1);

const targets = [
  target('direct', direct.url, {authorization: `Bearer ${direct.key}`}),
  target('gateway (local)', holder.url),
  target('mesh (remote)', entry.url),
];
for (const one of targets) for (let warm = 0; warm < 30; warm += 1) await ask(one, 1);
for (let round = 0; round < rounds; round += 1) {
  for (const one of targets) one.firstByteMs.push((await ask(one, 1)).firstByteMs);
}
const speeds = await Promise.all(targets.map(async () => 0));
for (const [index, one] of targets.entries()) speeds[index] = await tokensPerSecond(one);
print(speeds);
for (const {agent} of targets) agent.destroy();

function target(name: string, url: string, headers: Target['headers'] = {}): Target {
  return {name, url, headers, agent: new Agent({keepAlive: true, maxSockets: 16}), firstByteMs: []};
}

/** One streamed chat request; waits for its end. */
async function ask(one: Target, tokens: number): Promise<{firstByteMs: number; text: string}> {
  const {url, headers, agent} = one;
  const body = JSON.stringify({
    model,
    stream: true,
    max_tokens: tokens,
    messages: [{role: 'user', content: 'count'}],
  });
  const startMs = performance.now();
  const {promise, resolve, reject} = Promise.withResolvers<{firstByteMs: number; text: string}>();
  const sent = request(`${url}/v1/chat/completions`, {
    method: 'POST',
    agent,
    headers: {...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body)},
  });
  sent.on('error', error => {
    // llama-server ends a connection after a hundred requests, which is no answer to this one.
    if (sent.reusedSocket && 'code' in error && error.code === 'ECONNRESET') resolve(ask(one, tokens));
    else reject(error);
  });
  sent.on('response', response => {
    let firstByteMs: number | undefined;
    let text = '';
    response.setEncoding('utf8').on('data', (chunk: string) => {
      firstByteMs ??= performance.now() - startMs;
      text += chunk;
    });
    response.on('end', () => {
      if (text.endsWith('data: [DONE]\n\n')) resolve({firstByteMs: firstByteMs ?? Number.NaN, text});
      else reject(new Error(`${response.statusCode}: ${text.slice(0, 300)}`));
    });
  });
  sent.end(body);
  return promise;
}

/** Four streams at once, as many as there are slots; best of three, since a neighbour can only slow it down. */
async function tokensPerSecond(one: Target): Promise<number> {
  const runs: number[] = [];
  for (let run = 0; run < 3; run += 1) {
    const startMs = performance.now();
    await Promise.all(Array.from({length: 4}, async () => ask(one, 400)));
    runs.push((4 * 400 * 1000) / (performance.now() - startMs));
  }
  return Math.max(...runs);
}

function print(tokenSpeeds: readonly number[]): void {
  const [base] = targets;
  if (!base) return;
  console.log(`${rounds} requests each, in turns; model ${model}; 4 streams of 400 tokens for the speed\n`);
  const heads = ['first byte p50', 'p99', 'added p50', 'p99', 'tokens/s', 'of direct'];
  console.log(''.padEnd(18) + heads.map(word => word.padStart(16)).join(''));
  for (const [index, {name, firstByteMs}] of targets.entries()) {
    const at = (share: number): number => quantile(firstByteMs, share);
    const added = (share: number): number => at(share) - quantile(base.firstByteMs, share);
    const speed = tokenSpeeds[index] ?? 0;
    const cells = [
      `${at(0.5).toFixed(2)} ms`,
      `${at(0.99).toFixed(2)} ms`,
      `${added(0.5).toFixed(2)} ms`,
      `${added(0.99).toFixed(2)} ms`,
      speed.toFixed(0),
      `${((100 * speed) / (tokenSpeeds[0] ?? 1)).toFixed(0)} %`,
    ];
    console.log(name.padEnd(18) + cells.map(cell => cell.padStart(16)).join(''));
  }
  console.log('\nfirst goals, added: local 0.4 / 4 ms, remote 2 / 8 ms (p50 / p99)');
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** A llama-server of our own with the flags that a node gives its engines. */
async function startDirect(): Promise<{url: string; key: string}> {
  const key = 'bench';
  const port = await freePort();
  const scratch = await mkdtemp(join(tmpdir(), 'hearsay-bench-'));
  cleanup.defer(async () => rm(scratch, {recursive: true, force: true}));
  const file = tinyModel(`${model}.gguf`);
  const serving = ['-m', file, '--alias', model, '--host', '127.0.0.1', '--port', String(port), '--no-ui', '--offline'];
  const sizing = ['-c', '8192', '-np', '4', '--cache-ram', '0', '-t', '1'];
  const child = spawn(process.env['HEARSAY_TEST_ENGINE'] ?? 'llama-server', [...serving, ...sizing], {
    cwd: scratch,
    env: {...process.env, LLAMA_API_KEY: key},
    stdio: 'ignore',
  });
  cleanup.defer(() => void child.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}`;
  await until('llama-server is ready', async () => (await fetch(`${url}/health`).catch(() => undefined))?.ok === true);
  return {url, key};
}

async function freePort(): Promise<number> {
  const server = createServer();
  const {promise, resolve} = Promise.withResolvers<number>();
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    resolve(typeof address === 'object' && address ? address.port : 0);
  });
  const port = await promise;
  await new Promise(closed => {
    server.close(closed);
  });
  return port;
}
