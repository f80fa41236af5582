import {automatic, newRequestId} from '@hearsay/core';
import type {SignedRecord, WorkRequest, WorkResponse} from '@hearsay/core';
import test from 'ava';
import {digest, node} from '../../../test/support/builders.ts';
import {busy, scriptedLease, scriptedWorker} from '../../../test/support/scripted-worker.ts';
import {servePeers} from './serve-peer.ts';

const work: WorkRequest = {
  request: newRequestId({next: () => 0, bytes: length => new Uint8Array(length)}),
  attempt: 1,
  hop: 1,
  digests: [digest('a')],
  endpoint: '/v1/chat/completions',
  needs: [],
  policy: automatic,
  deadlineMs: undefined,
  bodyBytes: 0,
  waitEstimateMs: 0,
  force: false,
  traceparent: undefined,
};
const record: SignedRecord = {node: node('A'), payload: new Uint8Array(1), signature: new Uint8Array(64)};
const telling = {
  fresh: async (): Promise<SignedRecord> => record,
  recent: async (): Promise<SignedRecord> => record,
  begun: () => ({loadSeq: 4, sinceMs: 0}),
};
const {signal} = new AbortController();

test('S38, S39, S103: any hop but one is refused before anything is reserved', async t => {
  for (const hop of [0, 2, 3, 255]) {
    const local = scriptedWorker(node('A'), scriptedLease(['x']));
    t.like(await servePeers(local, telling)({...work, hop}, node('B'), signal), {kind: 'refused', code: 'hop'});
    t.is(local.offers.length, 0);
  }
});

test('S80: an attempt that is not newer than the newest seen is refused', async t => {
  const serve = servePeers(scriptedWorker(node('A'), scriptedLease(['x'])), telling);
  t.is((await serve({...work, attempt: 2}, node('B'), signal)).kind, 'accepted');
  for (const attempt of [1, 2]) {
    t.like(await serve({...work, attempt}, node('B'), signal), {kind: 'refused', code: 'stale-attempt'});
  }
  t.is((await serve({...work, attempt: 3}, node('B'), signal)).kind, 'accepted');
});

test('accept tells which records know of it, busy and the end of an answer carry a fresh one', async t => {
  const lease = scriptedLease(['x']);
  const accepted = await servePeers(scriptedWorker(node('A'), lease), telling)(work, node('B'), signal);
  if (accepted.kind !== 'accepted') return t.fail(accepted.kind);
  t.is(accepted.loadSeq, 4);
  const response = await accepted.run(new Uint8Array(), signal);
  t.is(response.record(), undefined);
  for await (const chunk of response.body) t.is(Buffer.from(chunk).toString(), 'x');
  t.is(response.record(), record);
  t.is(lease.disposals(), 1, 'the record tells of the slot as free');

  const refused = await servePeers(scriptedWorker(node('A'), busy(5)), telling)(work, node('B'), signal);
  t.like(refused, {kind: 'busy', record});
});

test('no asker is told the same record twice, and each is told a new one', async t => {
  let newest = record;
  const local = scriptedWorker(node('A'), async () => scriptedLease(['x']));
  const serve = servePeers(local, {...telling, recent: async () => newest});
  let attempt = 0;
  const told = async (from: string): Promise<SignedRecord | undefined> => {
    attempt += 1;
    const accepted = await serve({...work, attempt}, node(from), signal);
    if (accepted.kind !== 'accepted') throw new Error(accepted.kind);
    const response = await accepted.run(new Uint8Array(), signal);
    for await (const _chunk of response.body);
    return response.record();
  };
  t.deepEqual([await told('B'), await told('B'), await told('C')], [record, undefined, record]);
  newest = {...record};
  t.deepEqual([await told('B'), await told('B')], [newest, undefined]);
});

test('what was not sent has not been told', async t => {
  const serve = servePeers(
    scriptedWorker(node('A'), async () => scriptedLease(['x'])),
    telling,
  );
  const run = async (attempt: number): Promise<WorkResponse> => {
    const accepted = await serve({...work, attempt}, node('B'), signal);
    if (accepted.kind !== 'accepted') throw new Error(accepted.kind);
    const response = await accepted.run(new Uint8Array(), signal);
    for await (const _chunk of response.body);
    return response;
  };
  await run(1); // its client leaves at the last event, and its asker before the trailer
  t.is((await run(2)).record(), record);
  t.is((await run(3)).record(), undefined);
});
