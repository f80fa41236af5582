import {setImmediate as turn} from 'node:timers/promises';
import fc from 'fast-check';
import test from 'ava';
import {automatic, emptyView, newRequestId} from '@hearsay/core';
import type {EngineSnapshot, KnownNode, Lease, NodeId, Policy, Worker, WorkRequest} from '@hearsay/core';
import {beat, digest, engineBeat, model, node} from '../../../test/support/builders.ts';
import {storedModel} from '../../../test/support/engine-trial.ts';
import {realEnvironment} from '../../../test/support/environment.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {LoadClaims} from './load-claims.ts';

const wanted = digest('a');
const stored = storedModel('m', '/m', {digest: wanted, key: 'm'});
const signed = {node: node('A'), payload: new Uint8Array(), signature: new Uint8Array()};

function request(changes: Partial<WorkRequest> = {}): WorkRequest {
  return {
    request: newRequestId(realEnvironment().random),
    attempt: 1,
    hop: 0,
    digests: [wanted],
    endpoint: '/v1/chat/completions',
    needs: [],
    policy: automatic,
    deadlineMs: undefined,
    bodyBytes: 0,
    waitEstimateMs: 0,
    force: false,
    traceparent: undefined,
    ...changes,
  };
}

interface Trial {
  readonly workers: readonly Worker[];
  /** Nodes that have loaded it. */
  readonly loads: readonly NodeId[];
}

interface TrialOptions {
  /** Turns of the event loop that a message takes. */
  readonly delay: () => number;
  readonly dead?: readonly number[];
  /** Nodes on which it does not fit. */
  readonly full?: readonly number[];
  /** What all have heard of the first. */
  readonly heard?: 'ready' | 'loading' | undefined;
}

/** Nodes that all store the model, as far as claims go. */
function trial(count: number, {delay, dead = [], full = [], heard}: TrialOptions): Trial {
  const ids = Array.from({length: count}, (_, index) => node('ABCDEFGH'[index] ?? 'Z'));
  const loads: NodeId[] = [];
  const pause = async (): Promise<void> => {
    for (let left = delay(); left > 0; left -= 1) await turn();
  };
  const isLoaded = (id: NodeId): boolean => loads.includes(id);
  const claims: LoadClaims[] = ids.map(self => {
    const known = ids
      .filter(id => id !== self)
      .map((id): [NodeId, KnownNode] => {
        const engines = heard !== undefined && id === ids[0] ? [engineBeat('a', {readiness: heard})] : [];
        const told = {...beat('A', {engines}), node: id};
        return [id, {beat: told, signed, madeAtMs: 0, inventory: {digest: '', models: [model('m', 'a')]}}];
      });
    return new LoadClaims({
      ...realEnvironment(),
      clock: manualClock(), // nobody gives up because this process was stopped for a while
      keeper: {
        view: () => ({...emptyView, nodes: new Map(known)}),
        reach: () =>
          new Map(
            ids.map(id => [id, {roundTripMs: 1, relayed: false, quarantinedUntilMs: 0, failures: 0, ownOffers: 0}]),
          ),
      },
      models: {find: found => (found === wanted ? stored : undefined)},
      engines: {engines: () => (isLoaded(self) ? [starting] : [])},
      fresh: async () => signed,
      mesh: {
        self,
        worker: id => ({
          node: id,
          async offer(offered) {
            const index = ids.indexOf(id);
            await pause();
            const target = claims[index];
            if (dead.includes(index) || target === undefined) throw new Error('gone');
            if (offered.claim !== true) throw new Error('not a claim');
            const answer = await target.judge(wanted, self);
            await pause();
            return answer;
          },
        }),
      },
    });
  });
  const workers = ids.map((id, index): Worker => {
    const local: Worker = {
      node: id,
      async offer() {
        if (full.includes(index)) return {kind: 'busy', reason: 'memory', record: undefined, retryAfterMs: 1};
        if (!isLoaded(id)) loads.push(id);
        return lease;
      },
    };
    return claims[index]?.around(local) ?? local;
  });
  return {workers, loads};
}

const starting: EngineSnapshot = {
  key: 'm',
  model: stored,
  state: 'starting',
  slots: 1,
  busy: 0,
  queued: 0,
  waitMs: 0,
  context: 1,
  readySinceWallMs: undefined,
  unloadInMs: undefined,
  failure: undefined,
  processId: undefined,
};

const lease: Lease = {
  kind: 'accepted',
  digest: wanted,
  run: async () => Promise.reject(new Error('not run')),
  [Symbol.asyncDispose]: async () => {},
};

const signal = new AbortController().signal;

/** Requests for these nodes, each after so many turns. */
async function ask({workers}: Trial, starts: readonly (readonly [number, number])[]): Promise<readonly string[]> {
  return Promise.all(
    starts.map(async ([index, turns]) => {
      for (let left = turns; left > 0; left -= 1) await turn();
      const answer = await workers[index % workers.length]?.offer(request(), signal);
      return answer?.kind ?? 'none';
    }),
  );
}

const anyStarts = fc.array(fc.tuple(fc.nat(3), fc.nat(6)), {minLength: 1, maxLength: 12});
const anyDelays = fc.infiniteStream(fc.nat(5));

test('R91: in whatever order requests and answers come, the model is loaded exactly once', async t => {
  await fc.assert(
    fc.asyncProperty(anyStarts, anyDelays, async (starts, delays) => {
      const nodes = trial(4, {delay: () => delays.next().value ?? 0});
      const answers = await ask(nodes, starts);
      return nodes.loads.length === 1 && answers.includes('accepted');
    }),
    {numRuns: 150},
  );
  t.pass();
});

test('a node that is gone or has no room does not keep the others from loading', async t => {
  await fc.assert(
    fc.asyncProperty(
      anyDelays,
      fc.constantFrom<Partial<TrialOptions>>({dead: [0]}, {full: [0]}),
      async (delays, how) => {
        const nodes = trial(3, {delay: () => delays.next().value ?? 0, ...how});
        await ask(
          nodes,
          [
            [0, 0],
            [1, 0],
            [2, 0],
          ]
            .slice(how.dead === undefined ? 0 : 1)
            .map(([a = 0, b = 0]) => [a, b]),
        );
        return nodes.loads.filter(id => id !== node('A')).length === 1;
      },
    ),
    {numRuns: 60},
  );
  t.pass();
});

test('a peer that is heard to load it is asked instead; one that has it leaves the choice to the asker', async t => {
  const loading = trial(2, {delay: () => 0, heard: 'loading'});
  t.like(await loading.workers[1]?.offer(request(), signal), {kind: 'busy', reason: 'loading'});
  t.deepEqual(loading.loads, []);
  const ready = trial(2, {delay: () => 0, heard: 'ready'});
  t.is((await ready.workers[1]?.offer(request(), signal))?.kind, 'accepted');
});

const decided: readonly (readonly [string, Partial<WorkRequest>])[] = [
  ['pinned', {policy: pinned('here')}],
  ['forced', {force: true}],
];
for (const [how, changes] of decided) {
  test(`a ${how} request asks nobody`, async t => {
    const nodes = trial(2, {delay: () => 0, heard: 'loading'});
    t.is((await nodes.workers[1]?.offer(request(changes), signal))?.kind, 'accepted');
  });
}

function pinned(name: string): Policy {
  return {...automatic, placement: {kind: 'pin', nodes: [name]}};
}
