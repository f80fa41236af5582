import type {RequestSummary} from '@hearsay/core';
import type {Ended} from './ask-once.ts';

/** What one daemon's journal says, and when that daemon did not run. */
export interface NodeJournal {
  readonly name: string;
  readonly requests: readonly RequestSummary[];
  /** Wall clock, in milliseconds. */
  readonly killedAtMs: readonly number[];
  readonly stopped: readonly {readonly fromMs: number; readonly toMs: number}[];
}

/** The lease timeout, and a second for the scheduler of a machine that is shared. */
const doubleMsMax = 6000;

/** Every page of a daemon's journal. */
export async function readJournal(url: string): Promise<readonly RequestSummary[]> {
  const all: RequestSummary[] = [];
  for (let after = 0; ;) {
    const answer = await fetch(`${url}/hearsay/v1/requests?limit=1000&after=${after}`);
    const {requests}: {requests: RequestSummary[]} = await answer.json();
    all.push(...requests);
    const last = requests.at(-1);
    if (last === undefined) return all;
    after = last.change;
  }
}

/** Pure: requests that two nodes ran at the same time for longer than a lease lasts after a cut (law 2). */
export function doubleRuns(workers: readonly NodeJournal[]): readonly string[] {
  const runs = workers.flatMap(journal => journal.requests.flatMap(request => runOf(request, journal)));
  return [...Map.groupBy(runs, ({id}) => id)].flatMap(([id, of]) =>
    of.flatMap((one, index) =>
      of.slice(index + 1).flatMap(other => {
        const ms = one.node === other.node ? 0 : overlapMs(one, other);
        return ms > doubleMsMax ? [`${id} ran on ${one.node} and ${other.node} for ${Math.round(ms)} ms`] : [];
      }),
    ),
  );
}

interface Run {
  readonly id: string;
  readonly node: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** What is left open by a kill ended with it; a daemon that stands still ends its part when it goes on. */
function runOf(request: RequestSummary, {name, killedAtMs, stopped}: NodeJournal): readonly Run[] {
  const {id, role, atMs: fromMs, totalMs, digest, message} = request;
  if (role !== 'worker' || digest === undefined || totalMs === undefined) return [];
  const wasKilled = message === 'the daemon ended while it ran';
  const endMs = wasKilled ? killedAtMs.find(ms => ms >= fromMs) : fromMs + totalMs;
  if (endMs === undefined) return [];
  const pause = stopped.find(each => each.fromMs < endMs && each.toMs >= endMs && each.fromMs > fromMs);
  return [{id, node: name, fromMs, toMs: pause === undefined ? endMs : pause.fromMs}];
}

function overlapMs(one: Run, other: Run): number {
  return Math.min(one.toMs, other.toMs) - Math.max(one.fromMs, other.fromMs);
}

/** Pure: requests whose end the entry's journal does not tell as the client has seen it (law 10). */
export function lostRequests(ended: readonly Ended[], entry: readonly RequestSummary[]): readonly string[] {
  const known = new Map(entry.map(request => [String(request.id), request]));
  return ended.flatMap(({id, outcome}) => {
    if (id === undefined) return outcome === 'gateway gone' ? [] : [`a request without a name: ${outcome}`];
    const kept = known.get(id)?.outcome;
    const isTold = kept !== undefined && agrees(outcome, kept);
    return isTold ? [] : [`${id} ended as ${outcome}, and the journal says ${kept ?? 'nothing'}`];
  });
}

function agrees(outcome: Ended['outcome'], kept: string): boolean {
  if (outcome === 'whole') return kept === 'finished';
  if (outcome === 'left') return kept === 'cancelled' || kept === 'finished';
  return kept !== 'finished';
}
