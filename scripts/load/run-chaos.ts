import {join} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import {startDaemon} from '../../test/support/daemon.ts';
import type {Daemon, DaemonOptions} from '../../test/support/daemon.ts';
import {modelFolder} from '../../test/support/models.ts';
import {switchedLan, whyNoNamespaces} from '../../test/support/network-namespaces.ts';
import type {SwitchedLan} from '../../test/support/network-namespaces.ts';
import {models} from '../../test/support/reports.ts';
import {until} from '../../test/support/until.ts';
import {askOnce} from './ask-once.ts';
import type {Ended} from './ask-once.ts';
import {doubleRuns, lostRequests, readJournal} from './check-journals.ts';
import {dice} from './dice.ts';
import type {Dice} from './dice.ts';
import {reachWithin} from './reach-within.ts';
import {Tally} from './tally.ts';

/**
 * A thousand requests on five daemons, while every few seconds one of them is killed, stopped (SIGSTOP) or cut off,
 * wholly or in one direction. Every request must end with a name, nothing may be replayed after output or run twice for
 * longer than a lease, the journal must tell every end, and the mesh must be whole at the end.
 */
export interface ChaosReport {
  readonly outcomes: Tally;
  readonly disturbances: Tally;
  readonly faults: readonly string[];
  /** Requests that were given to another node before output, and then answered whole. */
  readonly moved: number;
  readonly seconds: number;
}

export interface ChaosOptions {
  readonly requests: number;
  /** It goes on until there have been so many, which take turns in kind; 1 unless given. */
  readonly disturbancesMin?: number;
  /** Between two disturbances; `usualPauseMs` unless given. */
  readonly pauseMs?: number;
  /** Between two requests of a client; none unless given. */
  readonly restMs?: number;
  readonly seed: number;
  readonly say: (line: string) => void;
}

const names = ['ash', 'birch', 'cedar', 'elm', 'fir'];
/**
 * The entry has no model, so every request crosses the mesh, and is never disturbed: a client whose own gateway dies
 * has nobody who could tell it anything.
 */
const entryName = 'ash';
const model = 'tiny-count-F16';

/** The counting model says this many numbers and then ends its turn. */
const tokensMax = 400;

const clients = 4;
const usualPauseMs = 3000;
const disturbanceMsMin = 2000;
const disturbanceMsMax = 9000;
const restartsMax = 4;
/** A daemon that goes on again needs a moment to see what it has missed. */
const resumeMs = 2000;
const answerMsMax = 90_000;

/** Inside its own network every daemon has the same. */
const gatewayPort = 4327;

interface Host {
  readonly name: string;
  readonly index: number;
  readonly options: DaemonOptions;
  /** Of its gateway, the same before and after a restart. */
  url: string;
  daemon: Daemon;
  readonly killedAtMs: number[];
  readonly stopped: {readonly fromMs: number; readonly toMs: number}[];
}

type Teardown = Parameters<typeof startDaemon>[0];

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const {requests, disturbancesMin = 1, pauseMs = usualPauseMs, restMs = 0, seed, say} = options;
  await using cleanup = new AsyncDisposableStack();
  const teardown = {teardown: (run: () => unknown): void => cleanup.defer(async () => void (await run()))};
  const random = dice(seed);
  const outcomes = new Tally();
  const disturbances = new Tally();
  const ended: Ended[] = [];
  const missing = whyNoNamespaces();
  if (missing !== undefined) say(`no link is cut: ${missing}`);
  const lan = missing === undefined ? switchedLan(teardown, names.length) : undefined;
  const hosts = await startHosts(teardown, lan);
  const entry = hosts.find(({name}) => name === entryName);
  if (!entry) throw new Error('no entry');
  const startedMs = performance.now();
  let left = requests;
  let lastNode = '';
  const goesOn = (): boolean => left > 0 || disturbances.total < disturbancesMin;

  /** Mostly the node that does the work: trouble elsewhere tests little. */
  function pickVictim(): Host {
    const others = hosts.filter(({name}) => name !== entryName);
    const busy = others.find(({name}) => name === lastNode);
    return busy && random.next() < 0.7 ? busy : random.pick(others);
  }

  const load = Array.from({length: clients}, async () => {
    while (goesOn()) {
      left -= 1;
      const ask = {url: entry.url, model, tokens: random.between(20, tokensMax), msMax: answerMsMax};
      const one = await askOnce({...ask, stream: random.next() < 0.7});
      ended.push(one);
      outcomes.add(one.outcome);
      lastNode = one.node ?? lastNode;
      await sleep(restMs);
      if (outcomes.total % 200 === 0) say(`${outcomes.total} requests, ${disturbances.total} disturbances`);
    }
  });
  const trouble = (async () => {
    while (goesOn()) {
      await sleep(pauseMs);
      const turn = seed + disturbances.total;
      if (goesOn()) disturbances.add(await disturb(turn, pickVictim(), {teardown, lan, random}));
    }
  })();
  await Promise.all([...load, trouble]);

  const faults = outcomes
    .entries()
    .filter(([name]) => name.startsWith('WRONG') || name === 'gateway gone')
    .map(([name, count]) => `${count} requests: ${name}`);
  for (const host of hosts) {
    await until('all know all again', async () => (await holders(host)) === names.length - 1, 20_000).catch(() =>
      faults.push(`${host.name} does not know all holders again`),
    );
  }
  const journals = await Promise.all(hosts.map(async host => ({...host, requests: await readJournal(host.url)})));
  const own = journals.find(({name}) => name === entryName)?.requests ?? [];
  faults.push(...doubleRuns(journals), ...lostRequests(ended, own));
  const moved = own.filter(({attempts, outcome}) => attempts > 1 && outcome === 'finished').length;
  return {outcomes, disturbances, faults, moved, seconds: (performance.now() - startedMs) / 1000};
}

/** Five daemons of which four have the model, on a switch where that can be made. */
async function startHosts(teardown: Teardown, lan: SwitchedLan | undefined): Promise<readonly Host[]> {
  const hosts: Host[] = [];
  for (const [index, name] of names.entries()) {
    const within = lan?.within(index);
    const options: DaemonOptions = {
      name,
      mesh: `chaos-${process.pid}`,
      models: name === entryName ? [] : [await modelFolder(teardown, `${model}.gguf`)],
      variables: {HEARSAY_THREADS: '1', HEARSAY_CONTEXT: '2048', HEARSAY_SLOTS: '2'},
      dataFolder: join(await modelFolder(teardown), 'data'),
      ...(within === undefined ? {} : {within, meshPort: 4328, gateway: `127.0.0.1:${gatewayPort}`}),
    };
    const daemon = await startDaemon(teardown, options);
    const url = within === undefined ? daemon.url : await reachWithin(within, gatewayPort, teardown);
    hosts.push({name, index, options, url, daemon, killedAtMs: [], stopped: []});
  }
  for (const host of hosts) {
    await until('all know all', async () => (await holders(host)) === names.length - 1, 20_000);
  }
  return hosts;
}

async function holders({url}: Host): Promise<number> {
  return (await models(url)).find(({name}) => name === model)?.nodes.length ?? 0;
}

/** A machine that does much else may need more than one try. */
async function restart({name, options}: Host, teardown: Teardown): Promise<Daemon> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startDaemon(teardown, options);
    } catch (error) {
      if (attempt === restartsMax) throw new Error(`${name} does not come back`, {cause: error});
    }
  }
}

interface Means {
  readonly teardown: Teardown;
  /** Undefined: no link can be cut. */
  readonly lan: SwitchedLan | undefined;
  readonly random: Dice;
}

/** Gets one daemon into trouble and out again; tells what was done. Every turn brings another kind of trouble. */
async function disturb(turn: number, host: Host, {teardown, lan, random}: Means): Promise<string> {
  const kinds = ['kill', 'stop', ...(lan === undefined ? [] : ['cut', 'deafen'])];
  const kind = kinds[turn % kinds.length] ?? 'kill';
  // Below and above the time after which a silent link counts as lost.
  const ms = random.between(disturbanceMsMin, disturbanceMsMax);
  switch (kind) {
    case 'kill':
      host.daemon.kill('SIGKILL');
      host.killedAtMs.push(Date.now());
      await sleep(ms);
      host.daemon = await restart(host, teardown);
      if (lan === undefined) host.url = host.daemon.url;
      return 'kill -9 of a daemon';
    case 'stop': {
      const fromMs = Date.now();
      host.daemon.kill('SIGSTOP');
      await sleep(ms);
      host.daemon.kill('SIGCONT');
      host.stopped.push({fromMs, toMs: Date.now() + resumeMs});
      return 'SIGSTOP of a daemon, SIGCONT later';
    }
    case 'cut':
      lan?.cable(host.index, 'down');
      await sleep(ms);
      lan?.cable(host.index, 'up');
      return 'a cable pulled, and plugged in again';
    default: {
      const undo = lan?.lose(host.index, random.pick(['sent', 'received'] as const));
      await sleep(ms);
      undo?.();
      return 'packets of one direction lost for a while';
    }
  }
}
