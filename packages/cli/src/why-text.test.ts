import {newRequestId} from '@hearsay/core';
import test from 'ava';
import {candidate} from '../../../test/support/builders.ts';
import type {EventRow, RankedRow, SummaryRow} from './journal-reports.ts';
import {systemRandom} from './system.ts';
import {replayText, requestTable, routeText, whyText} from './why-text.ts';

const id = newRequestId(systemRandom);

const summary = (changes: Partial<SummaryRow> = {}): SummaryRow => ({
  id,
  role: 'entry',
  atMs: 0,
  outcome: 'finished',
  code: undefined,
  message: undefined,
  asked: 'qwen',
  endpoint: '/v1/chat/completions',
  policy: 'auto',
  policyFrom: 'default',
  bodyBytes: 12_300,
  caller: undefined,
  from: undefined,
  nodeName: 'spark',
  digest: undefined,
  model: 'qwen3:8b',
  status: 200,
  attempts: 1,
  estimateMs: 100,
  firstByteMs: 900,
  totalMs: 2100,
  usage: undefined,
  change: 1,
  ...changes,
});

const row = (name: string, changes: Partial<RankedRow> = {}): RankedRow => ({
  ...candidate('A'),
  name,
  place: 0,
  reason: 'loaded',
  state: 'ready',
  cost: undefined,
  ...changes,
});

const why = (events: readonly EventRow[], changes: Partial<SummaryRow> = {}): string =>
  whyText({summary: summary(changes), steps: events.map(event => ({sinceMs: 1234, event})), replay: []});

test('a cost is told term by term, and what was guessed says so', t => {
  const cost = {
    seconds: 2.5,
    terms: {path: 0.01, model: 2.4, queue: 0, decode: 0.09},
    sources: {path: 'measured', model: 'guess'},
  };
  t.regex(
    why([{kind: 'decided', ranked: [row('spark', {cost})]}]),
    /1\. {2}spark: loaded, .*costs 2\.5 s = path 10 ms \+ model 2\.4 s \(guess\) \+ decode 90 ms\n/u,
  );
});

test('every reason to leave a node out is a sentence', t => {
  const out = (exclusion: string) =>
    why([{kind: 'decided', ranked: [row('mini', {place: undefined, exclusion, reason: exclusion})]}]);
  for (const exclusion of ['policy', 'not connected', 'stale', 'draining', 'paused', 'artifact', 'capability']) {
    t.regex(out(exclusion), /out mini: (?:it|its|the|this|nothing) \S+ \S+/u, exclusion);
  }
  t.regex(out('something new'), /out mini: something new\n/u);
});

test('busy, refused and forced are told in words', t => {
  const told = why([
    {kind: 'offered', attempt: 1, nodeName: 'spark', force: false, estimateMs: 0},
    {kind: 'busy', attempt: 1, reason: 'slots', retryAfterMs: 3000},
    {kind: 'offered', attempt: 2, nodeName: 'mini', force: true, estimateMs: 1500},
    {kind: 'refused', attempt: 2, message: 'no llama-server'},
  ]);
  t.regex(told, /spark said busy: all its slots are in use; a slot is expected in 3\.0 s/u);
  t.regex(told, /asked mini to queue it: nobody has a shorter wait \(expected wait 1\.5 s\)/u);
  t.regex(told, /mini refused: no llama-server/u);
});

test('an end other than finished says why', t => {
  t.regex(why([], {outcome: 'interrupted', message: 'spark broke off'}), /It was interrupted: spark broke off\./u);
  t.regex(why([], {outcome: undefined}), /still running/u);
});

test('text from other machines cannot move the cursor', t => {
  const told = why([{kind: 'offered', attempt: 1, nodeName: 'a\u001B[2J\nb', force: false, estimateMs: 0}]);
  t.true(told.includes('asked a?[2J?b'));
  t.false(told.includes('\u001B'));
});

test('the table has a line a request and no header where one was before', t => {
  const rows = [summary(), summary({outcome: undefined, role: 'worker', usage: undefined, totalMs: undefined})];
  const table = requestTable(rows, 1000);
  t.is(table.split('\n').length, 4);
  t.regex(table, /qwen3:8b +spark +1 +900 ms +2\.1 s +- +finished\n/u);
  t.regex(table, /here, for a peer .* running\n/u);
  t.false(requestTable(rows, 1000, false).includes('REQUEST'));
});

test('route and replay say in the first words what matters', t => {
  const route = {
    asked: 'qwen',
    model: 'qwen3:8b',
    digests: [],
    policy: 'pin=spark',
    policyFrom: 'header',
    promptBytes: 0,
    hosted: [],
    ranked: [row('spark')],
  };
  t.regex(
    routeText(route),
    /^A request for qwen \(qwen3:8b\) would go to spark: loaded\.\nPolicy: pin=spark \(from the/u,
  );
  const nobody = {...route, ranked: [row('mini', {place: undefined, exclusion: 'artifact'})]};
  t.regex(routeText(nobody), /^A request for .* could run nowhere now\./u);
  const hosted = [{name: 'acme (hosted)', waitMsMax: 30_000}];
  t.regex(routeText({...nobody, hosted}), /would leave the mesh for acme \(hosted\): no node could run it now\./u);
  t.regex(routeText({...route, hosted}), /would go to spark.*\nIt would leave the mesh if no node .* above 30\.0 s\./u);
  const slow = {...route, hosted, ranked: [row('spark', {waitMs: 60_000})]};
  t.regex(routeText(slow), /would leave the mesh for acme \(hosted\): the wait for a node is 1 min/u);
  const differing = {sinceMs: 5, agrees: false, recorded: 'a', again: undefined, differences: ['a was number 1']};
  t.regex(replayText([differing]), /DIFFERS: a then, nobody now\n +a was number 1\n$/u);
});
