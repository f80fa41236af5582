import {randomUUID} from 'node:crypto';
import {startDaemon} from './daemon.ts';
import type {Daemon, DaemonOptions} from './daemon.ts';
import {modelFolder} from './models.ts';
import {models} from './reports.ts';
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
