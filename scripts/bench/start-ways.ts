import {spawn} from 'node:child_process';
import type {ChildProcess} from 'node:child_process';
import {once} from 'node:events';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {createServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {startDaemon} from '../../test/support/daemon.ts';
import type {Daemon, DaemonOptions} from '../../test/support/daemon.ts';
import {modelFolder, tinyModel} from '../../test/support/models.ts';
import {models} from '../../test/support/reports.ts';
import {until} from '../../test/support/until.ts';
import {target} from './ask-stream.ts';
import type {Target} from './ask-stream.ts';

/** Runs in a real llama-server. */
export const realModel = 'tiny-count-F16';

/** Models of the scripted engine, all alike: a node allows an external engine 256 slots for each of its models. */
export const scriptedModels = ['stamps-1', 'stamps-2', 'stamps-3', 'stamps-4'] as const;

export interface WayOptions {
  /** Another checkout whose daemons are measured beside those of this one. */
  readonly against: string | undefined;
  /** Where daemons leave CPU profiles at their end. */
  readonly profiles: string | undefined;
}

/** The ways of one kind of request: the first goes straight to the engine. */
export interface Ways {
  readonly real: readonly Target[];
  readonly scripted: readonly Target[];
}

/** Starts both engines and the nodes of each checkout: one that has the engines, and one that must cross the mesh. */
export async function startWays(cleanup: AsyncDisposableStack, {against, profiles}: WayOptions): Promise<Ways> {
  const llama = await startLlamaServer(cleanup);
  const tokens = await startScript(cleanup, tokenEngine);
  const real = [target('direct', llama.url, {headers: {authorization: `Bearer ${llama.key}`}})];
  const scripted = [target('direct', `${tokens.url}/1`)];
  for (const checkout of [undefined, ...(against === undefined ? [] : [against])]) {
    const pair = await startPair(cleanup, tokens.url, checkout, profiles);
    const mark = checkout === undefined ? '' : ' (against)';
    const ways = [
      target(`local${mark}`, pair.holder.url, {pids: {node: pair.holder.pid}}),
      target(`remote${mark}`, pair.entry.url, {pids: {entry: pair.entry.pid, worker: pair.holder.pid}}),
    ];
    real.push(...ways);
    scripted.push(...ways);
  }
  scripted.push(target('plain proxy', (await startScript(cleanup, plainProxy, `${tokens.url}/1`)).url));
  return {real, scripted};
}

interface Pair {
  readonly holder: Daemon;
  readonly entry: Daemon;
}

async function startPair(
  cleanup: AsyncDisposableStack,
  tokensUrl: string,
  checkout: string | undefined,
  profiles: string | undefined,
): Promise<Pair> {
  const t = {teardown: (run: () => unknown): void => cleanup.defer(async () => void (await run()))};
  const folder = await modelFolder(t, `${realModel}.gguf`);
  const config = join(folder, 'config.toml');
  const externals = scriptedModels.map(
    (_, index) => `[[engines.external]]\nname = "e${index}"\nurl = "${tokensUrl}/${index + 1}/v1"\nslots = 256\n`,
  );
  await writeFile(config, externals.join('\n'));
  const profiling = (role: string): Record<string, string> =>
    profiles === undefined
      ? {}
      : {NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profiles} --cpu-prof-name=${role}.cpuprofile`};
  const options: DaemonOptions = {
    mesh: `bench-${process.pid}-${checkout === undefined ? 'this' : 'other'}`,
    ...(checkout === undefined ? {} : {launcher: join(checkout, 'packages', 'cli', 'bin', 'hearsay.mjs')}),
  };
  const holder = await startDaemon(t, {
    ...options,
    name: 'holder',
    models: [folder],
    flags: ['--config', config],
    variables: {HEARSAY_THREADS: '1', HEARSAY_CONTEXT: '2048', ...profiling('worker')},
  });
  const entry = await startDaemon(t, {...options, name: 'entry', variables: profiling('entry')});
  const known = scriptedModels.length + 1;
  await until('the entry node knows the models', async () => (await models(entry.url)).length === known, 30_000);
  return {holder, entry};
}

const fixtures = join(import.meta.dirname, '..', '..', 'test', 'fixtures');
const tokenEngine = join(fixtures, 'token-engine.ts');
const plainProxy = join(fixtures, 'plain-proxy.ts');

/** A server in a process of its own that prints its port. */
async function startScript(cleanup: AsyncDisposableStack, script: string, ...args: string[]): Promise<{url: string}> {
  const child = spawn(process.execPath, [script, ...args], {stdio: ['ignore', 'pipe', 'inherit']});
  cleanup.defer(() => void child.kill('SIGKILL'));
  return {url: `http://127.0.0.1:${await firstLine(child)}`};
}

async function firstLine({stdout}: Pick<ChildProcess, 'stdout'>): Promise<string> {
  if (stdout === null) throw new Error('the process has no output');
  const [line]: string[] = await once(stdout.setEncoding('utf8'), 'data');
  return (line ?? '').trim();
}

/** A llama-server of our own with the flags that a node gives its engines. */
async function startLlamaServer(cleanup: AsyncDisposableStack): Promise<{url: string; key: string}> {
  const key = 'bench';
  const port = await freePort();
  const scratch = await mkdtemp(join(tmpdir(), 'hearsay-bench-'));
  cleanup.defer(async () => rm(scratch, {recursive: true, force: true}));
  const file = tinyModel(`${realModel}.gguf`);
  const serving = ['-m', file, '--alias', realModel, '--host', '127.0.0.1', '--port', String(port), '--no-ui'];
  const sizing = ['--offline', '-c', '8192', '-np', '4', '--cache-ram', '0', '-t', '1'];
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
