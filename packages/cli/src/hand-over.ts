import {describeError} from '@hearsay/core';
import type {Clock} from '@hearsay/core';
import {loadModel} from './control-commands.ts';
import {enginesSchema} from './daemon-reports.ts';
import type {Query} from './query-commands.ts';
import {printable} from './tables.ts';

/**
 * Loads on other nodes what is loaded on this one alone, so that nobody waits for it there. What no other node can take
 * is named; it stays here until this node ends.
 */
export async function handOver(query: Query, clock: Clock): Promise<void> {
  const {engines} = (await query.client.list('/hearsay/v1/engines', enginesSchema)).report;
  const isUp = ({state}: {readonly state: string}): boolean => state === 'ready' || state === 'loading';
  const elsewhere = engines.filter(engine => engine.node !== 'local' && engine.nodeState === 'alive' && isUp(engine));
  const here = engines.filter(engine => engine.node === 'local' && engine.state === 'ready');
  const only = here.filter(({digest}) => !elsewhere.some(other => other.digest === digest));
  if (only.length === 0) query.terminal.error('nothing is loaded here that is not loaded elsewhere too\n');
  for (const {name, digest} of only) {
    const target = {model: `${name}@${digest}`, node: undefined, shown: name};
    const flags = {context: undefined, slots: undefined, keep: false, copies: undefined};
    try {
      await loadModel(target, flags, query, clock);
    } catch (error) {
      query.terminal.error(`${printable(name)} stays here alone: ${printable(describeError(error))}\n`);
    }
  }
}
