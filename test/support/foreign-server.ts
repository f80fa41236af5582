import {spawn} from 'node:child_process';
import {once} from 'node:events';
import type {ExecutionContext} from 'ava';
import {steadyPort} from './steady-port.ts';
import {until} from './until.ts';

/** A llama-server that hearsay did not start and must not touch. */
export interface ForeignServer {
  readonly url: string;
  readonly pid: number;
  kill(signal: NodeJS.Signals): void;
}

interface ForeignOptions {
  readonly model: string;
  readonly alias?: string;
  readonly apiKey?: string;
  readonly port?: number;
  /** Further arguments. */
  readonly flags?: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
}

/** A free port may be somebody else's a moment later, but hardly so often. */
const startsMax = 3;

/** Resolves when it answers; it ends with the test. */
export async function startForeignServer(
  t: Pick<ExecutionContext, 'teardown'>,
  options: ForeignOptions,
): Promise<ForeignServer> {
  for (let starts = 1; ; starts += 1) {
    const server = await tryToStart(t, options);
    if (server !== undefined) return server;
    if (options.port !== undefined || starts === startsMax) throw new Error('the foreign server ended at its start');
  }
}

/** Undefined when it ends before it answers, as when its port is taken. */
async function tryToStart(
  t: Pick<ExecutionContext, 'teardown'>,
  {model, alias, apiKey, port: wanted, flags: more = [], variables}: ForeignOptions,
): Promise<ForeignServer | undefined> {
  const port = wanted ?? (await steadyPort());
  const flags = [
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    '-c',
    '2048',
    '-np',
    '2',
    '--cache-ram',
    '0',
    '-t',
    '1',
  ];
  const names = alias === undefined ? [] : ['--alias', alias];
  const keys = apiKey === undefined ? [] : ['--api-key', apiKey];
  const command = process.env['HEARSAY_TEST_ENGINE'] ?? 'llama-server';
  const child = spawn(command, ['-m', model, '--no-ui', '--offline', ...flags, ...names, ...keys, ...more], {
    stdio: 'ignore',
    env: {...process.env, ...variables},
  });
  const exited = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const url = `http://127.0.0.1:${port}`;
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  await until('the foreign server', async () => hasEnded() || (await health(url)) === 200, 30_000);
  if (hasEnded()) return undefined;
  return {url, pid: child.pid ?? 0, kill: signal => void child.kill(signal)};
}

async function health(url: string): Promise<number> {
  try {
    return (await fetch(`${url}/health`)).status;
  } catch {
    return 0; // not listening yet
  }
}
