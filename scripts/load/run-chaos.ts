import {setTimeout as sleep} from 'node:timers/promises';
import {startDaemon} from '../../test/support/daemon.ts';
import type {Daemon, DaemonOptions} from '../../test/support/daemon.ts';
import {modelFolder} from '../../test/support/models.ts';
import {models} from '../../test/support/reports.ts';
import {until} from '../../test/support/until.ts';
import {askOnce} from './ask-once.ts';
import {dice} from './dice.ts';
import type {Dice} from './dice.ts';
import {Tally} from './tally.ts';

/**
 * A thousand requests on five daemons, while every few seconds one of them is killed or stopped (SIGSTOP).
 * Every request must end with a name, nothing may be replayed after output, and the mesh must be whole at the end.
 */
export interface ChaosReport {
  readonly outcomes: Tally;
  readonly disturbances: Tally;
  readonly faults: readonly string[];
  readonly seconds: number;
}

export interface ChaosOptions {
  readonly requests: number;
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
const pauseMs = 3000;
const disturbanceMs = 4000;
const answerMsMax = 90_000;

interface Host {
  readonly name: string;
  readonly options: DaemonOptions;
  daemon: Daemon;
}

export async function runChaos({requests, seed, say}: ChaosOptions): Promise<ChaosReport> {
  await using cleanup = new AsyncDisposableStack();
  const teardown = {teardown: (run: () => unknown): void => cleanup.defer(async () => void (await run()))};
  const random = dice(seed);
  const outcomes = new Tally();
  const disturbances = new Tally();
  const hosts = await startHosts(teardown, `chaos-${process.pid}`);
  const entry = hosts.find(({name}) => name === entryName);
  if (!entry) throw new Error('no entry');
  const startedMs = performance.now();
  let left = requests;
  let lastNode = '';
  const goesOn = (): boolean => left > 0;

  /** Mostly the node that does the work: trouble elsewhere tests little. */
  function pickVictim(): Host {
    const others = hosts.filter(({name}) => name !== entryName);
    const busy = others.find(({name}) => name === lastNode);
    return busy && random.next() < 0.7 ? busy : random.pick(others);
  }

  const load = Array.from({length: clients}, async () => {
    while (goesOn()) {
      left -= 1;
      const ask = {url: entry.daemon.url, model, tokens: random.between(20, tokensMax), msMax: answerMsMax};
      const {outcome, node} = await askOnce({...ask, stream: random.next() < 0.7});
      outcomes.add(outcome);
      lastNode = node ?? lastNode;
      if (outcomes.total % 200 === 0) say(`${outcomes.total} requests, ${disturbances.total} disturbances`);
    }
  });
  const trouble = (async () => {
    while (goesOn()) {
      await sleep(pauseMs);
      if (goesOn()) await disturb(pickVictim(), teardown, disturbances, random);
    }
  })();
  await Promise.all([...load, trouble]);

  const faults = outcomes
    .entries()
    .filter(([name]) => name.startsWith('WRONG') || name === 'gateway gone')
    .map(([name, count]) => `${count} requests: ${name}`);
  for (const host of hosts) {
    await until('all know all again', async () => (await holders(host.daemon)) === names.length - 1, 20_000).catch(() =>
      faults.push(`${host.name} does not know all holders again`),
    );
  }
  return {outcomes, disturbances, faults, seconds: (performance.now() - startedMs) / 1000};
}

/** Five daemons that all have the model. */
async function startHosts(teardown: Parameters<typeof startDaemon>[0], mesh: string): Promise<readonly Host[]> {
  const hosts: Host[] = [];
  for (const name of names) {
    const options: DaemonOptions = {
      name,
      mesh,
      models: name === entryName ? [] : [await modelFolder(teardown, `${model}.gguf`)],
      variables: {HEARSAY_THREADS: '1', HEARSAY_CONTEXT: '2048', HEARSAY_SLOTS: '2'},
    };
    hosts.push({name, options, daemon: await startDaemon(teardown, options)});
  }
  for (const {daemon} of hosts) {
    await until('all know all', async () => (await holders(daemon)) === names.length - 1, 20_000);
  }
  return hosts;
}

async function holders({url}: Daemon): Promise<number> {
  return (await models(url)).find(({name}) => name === model)?.nodes.length ?? 0;
}

async function disturb(
  host: Host,
  teardown: Parameters<typeof startDaemon>[0],
  tally: Tally,
  random: Dice,
): Promise<void> {
  if (random.next() < 0.5) {
    host.daemon.kill('SIGKILL');
    tally.add('kill -9 of a daemon');
    await sleep(disturbanceMs);
    host.daemon = await startDaemon(teardown, host.options);
  } else {
    host.daemon.kill('SIGSTOP');
    tally.add('SIGSTOP of a daemon, SIGCONT later');
    await sleep(disturbanceMs);
    host.daemon.kill('SIGCONT');
  }
}
