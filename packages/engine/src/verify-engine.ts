import {spawn, type ChildProcess} from 'node:child_process';
import {once} from 'node:events';
import {createServer} from 'node:net';
import {Fault, timeLimit, type Clock} from '@hearsay/core';
import {engineVersion, type Engine} from './find-engine.ts';
import type {InstallProgress} from './install-engine.ts';

/** The self-test's model is small: it loads in a blink, on a slow disk in seconds. */
const selfTestTimeLimitMs = 60_000;

const pollMs = 50;

/** Another program may take the free port before the engine does. */
const portTriesMax = 3;

const reasonCharsMax = 1500;

/** Runs an engine for a moment: it must name its version and, if there is a model to try, produce a token with it. */
export async function verifyEngine(
  engine: Pick<Engine, 'command' | 'leadingArguments'>,
  model: string | undefined,
  report: (progress: InstallProgress) => void,
  deps: {readonly clock: Clock},
  signal?: AbortSignal,
): Promise<string> {
  report({step: 'verify', done: 0, total: 2, note: 'version'});
  const version = await engineVersion(engine, deps, signal);
  report({step: 'verify', done: 1, total: 2, note: model === undefined ? 'no model to try, left out' : 'a token'});
  if (model !== undefined) await generateToken(engine, model, deps, signal);
  return version;
}

async function generateToken(
  engine: Pick<Engine, 'command' | 'leadingArguments'>,
  model: string,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    const failure = await tryToken(engine, model, deps, signal);
    if (failure === undefined) return;
    if (tries < portTriesMax && failure.includes("couldn't bind")) continue;
    const {command} = engine;
    throw new Fault('INSTALL_FAILED', `the new engine cannot run a model: ${failure}`, {details: {command, model}});
  }
}

/** Undefined when a token came, else the reason why not. The engine is gone when this returns. */
async function tryToken(
  engine: Pick<Engine, 'command' | 'leadingArguments'>,
  model: string,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const port = await freePort();
  const small = ['-c', '256', '-np', '1', '-t', '1', '--cache-ram', '0', '--no-ui', '--offline'];
  const place = ['--host', '127.0.0.1', '--port', `${port}`];
  const child = spawn(engine.command, [...engine.leadingArguments, '-m', model, ...small, ...place], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(-reasonCharsMax)));
  const ended = once(child, 'close').catch(() => {}); // a spawn error is seen as an engine without an answer

  using limit = timeLimit(deps.clock, selfTestTimeLimitMs, 'its self-test', signal);
  try {
    await waitForHealth(child, port, deps, limit.signal);
    const response = await fetch(`http://127.0.0.1:${port}/completion`, {
      method: 'POST',
      headers: {'content-type': 'application/json'},
      body: JSON.stringify({prompt: '1 2 3', n_predict: 1}),
      signal: limit.signal,
    });
    const answer: unknown = await response.json();
    if (typeof answer === 'object' && answer !== null && 'tokens_predicted' in answer && answer.tokens_predicted === 1)
      return undefined;
    return `no token but HTTP ${response.status}`;
  } catch (error) {
    signal?.throwIfAborted();
    return `${error instanceof Error ? error.message : String(error)}; it said: ${log.trim()}`;
  } finally {
    if (child.exitCode === null) child.kill('SIGKILL');
    await ended;
  }
}

async function waitForHealth(
  child: ChildProcess,
  port: number,
  deps: {readonly clock: Clock},
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null)
      throw new Error(`it ended at once (${child.signalCode ?? child.exitCode ?? 'not started'})`);
    const response = await fetch(`http://127.0.0.1:${port}/health`, {signal}).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.ok === true) return;
    await deps.clock.sleep(pollMs, signal);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (typeof address !== 'object' || address === null) throw new Fault('INTERNAL', 'a TCP server without a port');
  return address.port;
}
