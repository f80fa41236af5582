import {randomUUID} from 'node:crypto';
import type {ExecutionContext} from 'ava';
import {startDaemon} from './daemon.ts';
import type {Daemon, DaemonOptions} from './daemon.ts';
import {modelFolder} from './models.ts';
import {childrenWith} from './processes.ts';
import {busyAt, engines, models} from './reports.ts';
import {shared} from './shared.ts';
import {until} from './until.ts';

/** The nodes that the tests of a file ask and end: an entry node without models, and holders of one model. */
export interface Holders {
  /** The name of their mesh, for nodes that a test adds. */
  readonly mesh: () => string;
  /** The entry node and as many holders, all known to it: those that earlier tests have left, then new ones. */
  readonly take: (count: number) => Promise<readonly [Daemon, ...Daemon[]]>;
  /** Sends a signal to a holder that will not survive it. */
  readonly end: (holder: Daemon, signal: NodeJS.Signals) => void;
}

/** Holders of a tiny model for all tests of a file. `options` are for all nodes, `entryOptions` for the entry node. */
export function sharedHolders(
  model: string,
  options: Partial<DaemonOptions> = {},
  entryOptions: Partial<DaemonOptions> = {},
): Holders {
  const all = shared('an entry node', async ends => {
    const mesh = `test-${randomUUID().slice(0, 8)}`;
    const folder = await modelFolder(ends, `${model}.gguf`);
    const entry = await startDaemon(ends, {name: 'entry', mesh, ...options, ...entryOptions});
    const holders: Daemon[] = [];
    let started = 0;
    const addHolder = async (): Promise<void> => {
      const name = `holder-${started}`;
      started += 1;
      holders.push(await startDaemon(ends, {name, mesh, models: [folder], ...options}));
    };
    return {mesh, entry, holders, addHolder};
  });
  return {
    mesh: () => all().mesh,
    take: async count => {
      const {entry, holders, addHolder} = all();
      for (const superfluous of holders.splice(count)) await superfluous.stop();
      await Promise.all(Array.from({length: count - holders.length}, addHolder));
      await until('the entry node knows every holder, and no other', async () => {
        const held = (await models(entry.url)).find(({name}) => name === model);
        return namesOf(held?.nodes ?? []) === namesOf(holders);
      });
      return [entry, ...holders];
    },
    end: (holder, signal) => {
      const {holders} = all();
      const index = holders.indexOf(holder);
      if (index < 0) throw new Error(`${holder.name} is none of the holders, or not any more`);
      holders.splice(index, 1);
      holder.kill(signal);
    },
  };
}

/** Loads the model on that node and nowhere else; the entry node knows it, so that requests go there. */
export async function loadOnly(entry: Daemon, model: string, {name}: Daemon): Promise<void> {
  const act = async (what: 'stop' | 'load', wish: object): Promise<void> => {
    const response = await fetch(`${entry.url}/hearsay/v1/${what}`, {method: 'POST', body: JSON.stringify(wish)});
    if (!response.ok) throw new Error(`${what}: ${response.status} ${await response.text()}`);
    await response.text();
  };
  const known = async () => (await engines(entry.url)).filter(each => each.name === model);
  await act('stop', {model});
  await until('nobody has it loaded', async () => (await known()).length === 0);
  await act('load', {model, node: name});
  await until('its load is known', async () => (await known()).some(({state}) => state === 'ready'));
}

/**
 * Stops the engines of a node in their tracks, so that nothing comes of a request before the test has done what it
 * must do before that, however slow the machine. Wakes them when it is called, or with the test.
 */
export function freezeEngines(t: Pick<ExecutionContext, 'teardown'>, {pid}: Daemon): () => void {
  const engineIds = childrenWith('--alias ', [pid]);
  const send = (signal: NodeJS.Signals): void => {
    for (const id of engineIds) {
      try {
        process.kill(id, signal);
      } catch {
        // It has ended with its daemon.
      }
    }
  };
  if (engineIds.length === 0) throw new Error('there is no engine');
  let isFrozen = true;
  const wake = (): void => {
    if (isFrozen) send('SIGCONT');
    isFrozen = false;
  };
  send('SIGSTOP');
  t.teardown(wake);
  return wake;
}

/** The one of them whose own engines answer a request, undefined when none does. */
export async function workingOf(holders: readonly Daemon[]): Promise<Daemon | undefined> {
  const busy = await Promise.all(holders.map(async ({url}) => busyAt(url)));
  return holders.find((_, index) => (busy[index] ?? 0) > 0);
}

function namesOf(nodes: readonly {readonly name: string}[]): string {
  return nodes
    .map(({name}) => name)
    .toSorted()
    .join(' ');
}
