/** What the tests in network namespaces have in common: they ask daemons from inside their own namespaces. */
import {execFile} from 'node:child_process';
import {promisify} from 'node:util';
import test from 'ava';
import type {NodeReport} from '@hearsay/core';
import type {Daemon} from './daemon.ts';
import {whyNoNamespaces} from './network-namespaces.ts';
import {shared} from './shared.ts';
import type {Ends} from './shared.ts';

const missing = whyNoNamespaces();
if (missing !== undefined) console.log(`test/net is skipped: ${missing}`);

/** A test that needs network namespaces; skipped, with the reason printed, where there are none. */
export const netTest: typeof test.serial | typeof test.skip = missing === undefined ? test.serial : test.skip;

/** Several daemons and commands, one after the other, with nothing compiled yet. */
const netStartMsMax = 300_000;

/** As `shared`, for tests that need network namespaces. */
export function netShared<T>(what: string, start: (ends: Ends) => Promise<T>): () => T {
  if (missing === undefined) return shared(what, start, netStartMsMax);
  return () => {
    throw new Error(missing);
  };
}

/** Seconds on a machine that has nothing else to do; busy ones of CI take ten times as long. */
export const meetMsMax = 60_000;

/** A request on a busy machine may be given to one node after the other, and none of them be quick. */
const askSecondsMax = 180;

/** An HTTP request from the host of the daemon: its gateway is on loopback there. */
export async function curl(daemon: Daemon, path: string, ...more: readonly string[]): Promise<string> {
  const [program, ...args] = [
    ...daemon.within,
    'curl',
    '-sS',
    '-m',
    String(askSecondsMax),
    `${daemon.url}${path}`,
    ...more,
  ];
  const {stdout} = await promisify(execFile)(program ?? 'curl', args, {maxBuffer: 64 * 1024 * 1024});
  return stdout;
}

export async function nodes(daemon: Daemon): Promise<readonly NodeReport[]> {
  const body: {nodes: readonly NodeReport[]} = JSON.parse(await curl(daemon, '/hearsay/v1/nodes'));
  return body.nodes;
}

/** Names of the nodes that the daemon can ask now, sorted, with blanks between. */
export async function alive(daemon: Daemon): Promise<string> {
  const all = await nodes(daemon);
  return all
    .filter(({state}) => state === 'alive')
    .map(({name}) => name)
    .toSorted()
    .join(' ');
}

/** What a command of the CLI prints on the host of the daemon; throws when it fails. */
export async function says(daemon: Daemon, ...args: readonly string[]): Promise<string> {
  const {code, stdout, stderr} = await daemon.cli(...args);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}
