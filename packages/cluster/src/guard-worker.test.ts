import {automatic, newRequestId} from '@hearsay/core';
import type {ModelStore, NodeFlags, Rights, WorkRequest} from '@hearsay/core';
import test from 'ava';
import {digest, node} from '../../../test/support/builders.ts';
import {scriptedLease, scriptedWorker} from '../../../test/support/scripted-worker.ts';
import {storedModel} from '../../../test/support/engine-trial.ts';
import {guardWorker} from './guard-worker.ts';

const everything: Rights = {models: undefined, workloads: undefined, nodes: undefined, policies: undefined};
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
  force: true,
  traceparent: undefined,
};
const {signal} = new AbortController();

function guarded(flags: Partial<NodeFlags> = {}) {
  const worker = scriptedWorker(node('A'), scriptedLease(['x']));
  const model = storedModel('qwen', '/m.gguf', {digest: digest('a')});
  const models: Pick<ModelStore, 'find'> = {find: asked => (asked === model.digest ? model : undefined)};
  const guard = {nodeName: 'spark', models, flags: () => ({draining: false, paused: false, ...flags})};
  return {worker, guard: guardWorker(worker, guard)};
}

test('a node that drains or whose owner uses it takes nothing, not even by force', async t => {
  for (const flags of [{draining: true}, {paused: true}]) {
    const {worker, guard} = guarded(flags);
    t.like(await guard.offer(work, signal), {kind: 'busy', reason: 'draining'});
    t.is(worker.offers.length, 0);
  }
});

test('a low battery is kept for the owner: requests of others are turned away, those that enter here are not', async t => {
  const {guard} = guarded({batteryShare: 0.1});
  t.like(await guard.offer(work, signal), {kind: 'busy', reason: 'draining'});
  t.is((await guard.offer({...work, hop: 0}, signal)).kind, 'accepted');
  t.is((await guarded({batteryShare: 0.5}).guard.offer(work, signal)).kind, 'accepted');
});

test('S69: the worker checks the rights of the key again: its own name and the model', async t => {
  const cases: readonly (readonly [Partial<Rights>, 'accepted' | 'refused'])[] = [
    [{}, 'accepted'],
    [{nodes: ['Spark'], models: ['qw*']}, 'accepted'],
    [{nodes: ['mini']}, 'refused'],
    [{models: ['llama']}, 'refused'],
  ];
  for (const [rights, kind] of cases) {
    const caller = {name: 'notes', rights: {...everything, ...rights}, policy: undefined};
    t.is((await guarded().guard.offer({...work, caller}, signal)).kind, kind, JSON.stringify(rights));
  }
});

test('S69: a key for `local` is good where the request enters, and at no other node', async t => {
  const caller = {name: 'notes', rights: {...everything, nodes: ['local']}, policy: undefined};
  t.is((await guarded().guard.offer({...work, hop: 0, caller}, signal)).kind, 'accepted');
  t.is((await guarded().guard.offer({...work, caller}, signal)).kind, 'refused');
});
