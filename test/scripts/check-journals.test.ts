import {newRequestId, summarize} from '@hearsay/core';
import type {RequestSummary} from '@hearsay/core';
import test from 'ava';
import {doubleRuns, lostRequests} from '../../scripts/load/check-journals.ts';
import type {NodeJournal} from '../../scripts/load/check-journals.ts';
import {digest} from '../support/builders.ts';
import {arrived} from '../support/journal-events.ts';

const id = newRequestId({next: () => 0, bytes: length => new Uint8Array(length)});

/** One run on a node, in seconds. */
function ran(from: number, to: number, changes: Partial<RequestSummary> = {}): RequestSummary {
  const moment = {wallMs: 1000 * from, sinceMs: 0, change: 1};
  const summary = summarize(undefined, id, arrived('m', {role: 'worker'}), moment);
  if (summary === undefined) throw new Error('no summary');
  return {...summary, digest: digest('a'), totalMs: 1000 * (to - from), outcome: 'finished', ...changes};
}

const journal = (name: string, request: RequestSummary, changes: Partial<NodeJournal> = {}): NodeJournal => ({
  name,
  requests: [request],
  killedAtMs: [],
  stopped: [],
  ...changes,
});

test('two runs of one request at the same time for longer than a lease are found, and others are not', t => {
  t.deepEqual(doubleRuns([journal('a', ran(0, 20)), journal('b', ran(10, 20))]), [`${id} ran on a and b for 10000 ms`]);
  t.deepEqual(doubleRuns([journal('a', ran(0, 15)), journal('b', ran(10, 20))]), []);
  t.deepEqual(doubleRuns([journal('a', ran(0, 10)), journal('b', ran(10, 20))]), []);
});

test('what was left open by a kill ended with it, and a daemon that stood still did not run', t => {
  const open = ran(0, 0, {outcome: 'interrupted', message: 'the daemon ended while it ran'});
  t.is(doubleRuns([journal('a', open, {killedAtMs: [12_000]}), journal('b', ran(1, 30))]).length, 1);
  t.deepEqual(doubleRuns([journal('a', open, {killedAtMs: [3000]}), journal('b', ran(1, 30))]), []);
  const stopped = [{fromMs: 3000, toMs: 21_000}];
  t.deepEqual(doubleRuns([journal('a', ran(0, 20), {stopped}), journal('b', ran(4, 30))]), []);
});

test('a request whose end the journal does not tell, or tells otherwise, is lost', t => {
  const of = (outcome: 'whole' | 'interrupted X') => [{id, outcome, node: undefined, attempts: 1, ms: 1}];
  t.deepEqual(lostRequests(of('whole'), [ran(0, 1)]), []);
  t.deepEqual(lostRequests(of('whole'), []), [`${id} ended as whole, and the journal says nothing`]);
  t.deepEqual(lostRequests(of('interrupted X'), [ran(0, 1)]), [
    `${id} ended as interrupted X, and the journal says finished`,
  ]);
  t.deepEqual(lostRequests(of('interrupted X'), [ran(0, 1, {outcome: 'interrupted'})]), []);
});
