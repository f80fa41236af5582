import test from 'ava';
import {joinCluster} from '@hearsay/cluster';
import {automatic, newRequestId} from '@hearsay/core';
import type {Answer, Cluster, Environment} from '@hearsay/core';
import {memoryNetwork} from '@hearsay/mesh';
import type {MemoryNetwork} from '@hearsay/mesh';
import {systemRandom} from '@hearsay/cli';
import {manualClock} from '../support/manual-clock.ts';
import type {ManualClock} from '../support/manual-clock.ts';
import {SimEngines} from './sim-engines.ts';
import {SimJournal} from './sim-journal.ts';
import {sameForAll} from './same-for-all.ts';
import {stored, storeOf} from './sim-store.ts';

interface Pair {
  readonly clock: ManualClock;
  readonly network: MemoryNetwork;
  /** Asks the node without models for `a`. */
  readonly ask: () => Promise<Answer>;
}

/** Two nodes that know each other: `holder` has the model `a`, `entry` has none. */
async function pair(): Promise<Pair> {
  const clock = manualClock();
  const environment: Environment = {clock, random: systemRandom, log: () => undefined};
  const network = memoryNetwork(environment, {seed: 1, delayMs: 1});
  const join = async (nodeName: string, names: readonly string[]): Promise<Cluster> =>
    joinCluster(
      {...sameForAll, nodeName, boot: 1},
      {
        ...environment,
        mesh: network.mesh(nodeName),
        engines: new SimEngines(nodeName, clock, []),
        models: storeOf(names.map(stored)),
        journal: new SimJournal(() => undefined),
        operatorStore: {read: async () => undefined, write: async () => undefined},
      },
    );
  await join('holder', ['a']);
  const entry = await join('entry', []);
  await clock.advance(4000);
  const ask = async (): Promise<Answer> => {
    const body = Buffer.from(JSON.stringify({request: 'r', tokens: 1}));
    const request = {model: 'a', endpoint: '/v1/chat/completions', needs: [], policy: automatic, body} as const;
    return entry.dispatch(
      {...request, id: newRequestId(systemRandom), traceparent: undefined},
      new AbortController().signal,
    );
  };
  return {clock, network, ask};
}

test('a model whose only holder has just gone out of reach is not called unknown: it is worth asking again', async t => {
  const {clock, network, ask} = await pair();
  network.partition(['entry'], ['holder']);
  const asked = ask().catch((error: unknown) => error);
  await clock.advance(3500);
  t.like(await asked, {code: 'NO_CANDIDATE', message: 'a is on holder, which this node cannot reach at the moment'});
  await clock.advance(20_000);
  const late = ask().catch((error: unknown) => error);
  await clock.advance(100);
  t.like(await late, {code: 'MODEL_NOT_FOUND'}, 'nobody has heard of the holder for longer than its word holds');
});

test('a request that comes while the connection is gone waits a moment for it', async t => {
  const {clock, network, ask} = await pair();
  network.partition(['entry'], ['holder']);
  const asked = ask();
  await clock.advance(1000);
  network.heal();
  await clock.advance(10_000);
  t.is((await asked).run.nodeName, 'holder');
});
