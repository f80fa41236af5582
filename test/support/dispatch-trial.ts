import {toEntry, weigh} from '@hearsay/core';
import type {NodeId, Worker} from '@hearsay/core';
import {dispatch} from '../../packages/cluster/src/dispatch.ts';
import type {AcceptedModels, DispatchDeps, Started} from '../../packages/cluster/src/dispatch.ts';
import {asked, candidate, clientRequest, digest} from './builders.ts';
import {manualClock} from './manual-clock.ts';

const request = clientRequest();

/** Workers in the order in which they rank. */
export function depsFor(...workers: readonly Worker[]): DispatchDeps & {readonly failures: NodeId[]} {
  const clock = manualClock();
  const failures: NodeId[] = [];
  return {
    failures,
    rank: (_digests, {tried, busy: busyNodes}) =>
      weigh(
        workers
          .map(({node: id}, index) =>
            candidate(id.slice(-1), {
              roomBytes: 1e9 - index,
              ...(tried.has(id) ? {exclusion: 'tried'} : {}),
              ...(busyNodes.has(id) ? {exclusion: 'busy'} : {}),
            }),
          )
          .map(toEntry),
        asked({request: 'r'}),
      ),
    worker(id) {
      const worker = workers.find(({node: own}) => own === id);
      if (!worker) throw new Error('asked a node that is not there');
      return worker;
    },
    heard: () => undefined,
    failed: id => void failures.push(id),
    succeeded: () => undefined,
    engineFailed: () => undefined,
    note: () => undefined,
    clock,
    patience: {firstByteMsMin: 10_000, firstByteMsMax: 60_000},
  };
}

/** Dispatches a request to them. */
export async function run(
  deps: DispatchDeps,
  signal: AbortSignal = new AbortController().signal,
  accepted: AcceptedModels = {digests: [digest('a')], exact: true},
): Promise<Started> {
  return dispatch(request, accepted, deps, signal);
}

/** The whole answer. */
export async function text(started: Started): Promise<string> {
  let all = '';
  for await (const chunk of started.body) all += Buffer.from(chunk).toString();
  return all;
}
