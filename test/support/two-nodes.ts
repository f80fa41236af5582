import {randomUUID} from 'node:crypto';
import {startDaemon} from './daemon.ts';
import type {Daemon, DaemonOptions} from './daemon.ts';
import {modelFolder} from './models.ts';
import {engines, models} from './reports.ts';
import {shared} from './shared.ts';
import {until} from './until.ts';

/** Clients must see no difference between the two. */
export interface TwoNodes {
  /** Has the models. */
  readonly holder: Daemon;
  /** Has none. */
  readonly entry: Daemon;
}

/** A node with these tiny models and one without, which has heard of them. */
export async function startTwoNodes(
  t: Parameters<typeof startDaemon>[0],
  files: readonly string[],
  options: Partial<DaemonOptions> = {},
): Promise<TwoNodes> {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const holder = await startDaemon(t, {...options, mesh, models: [await modelFolder(t, ...files)]});
  const entry = await startDaemon(t, {...options, mesh});
  await until('the models are known', async () => (await models(entry.url)).length === files.length);
  return {holder, entry};
}

/** One tiny model of each kind that clients ask for. */
export const sharedModels: readonly string[] = [
  'tiny-count-F16',
  'tiny-deep-F16',
  'tiny-embed-F16',
  'tiny-rerank-F16',
  'tiny-think-F16',
  'tiny-tool-F16',
];

/** Two nodes for all tests of a file that only ask: one with all the `sharedModels`, one with none. */
export function sharedTwoNodes(options: Partial<DaemonOptions> = {}): () => TwoNodes {
  const files = sharedModels.map(name => `${name}.gguf`);
  return shared('two nodes', async ends => startTwoNodes(ends, files, options));
}

/** Requests that the engine of a model answers at this moment; undefined while it has none. */
export async function busyWith(holder: Daemon, model: string): Promise<number | undefined> {
  return (await engines(holder.url)).find(({name}) => name === model)?.busy;
}
