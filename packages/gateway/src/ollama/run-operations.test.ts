import test from 'ava';
import {formatPolicy, newRequestId} from '@hearsay/core';
import type {Caller} from '@hearsay/core';
import {digest, node} from '../../../../test/support/builders.ts';
import {manualClock} from '../../../../test/support/manual-clock.ts';
import {engineReport, modelReport, scriptedCluster} from '../../../../test/support/scripted-cluster.ts';
import type {FindModel} from './known-model.ts';
import {ollamaRun} from './run-operations.ts';

const report = modelReport({contextMax: 32_768});
const rights = {models: undefined, workloads: undefined, nodes: undefined, policies: undefined};
const notes: Caller = {name: 'notes', rights, policy: undefined};

const id = newRequestId({next: () => 0, bytes: length => new Uint8Array(length)});

/** What becomes of a chat, where one engine has more context than the other. */
function read(body: object, frame: {readonly caller?: Caller; readonly policy?: string} = {}) {
  const cluster = {
    ...scriptedCluster(() => {
      throw new Error('nothing is run');
    }),
    engines: () => [engineReport('A', {context: 4096}), engineReport('B', {context: 16_384})],
  };
  const find: FindModel = () => ({kind: 'known', asked: 'tiny', target: 'tiny', report, preset: undefined});
  const bytes = Buffer.from(JSON.stringify({model: 'tiny', ...body}));
  const whole = {id, policy: undefined, traceparent: undefined, contentType: undefined, ...frame};
  return {cluster, read: ollamaRun('chat', {cluster, clock: manualClock(), find}).read(bytes, whole)};
}

const talk = {messages: [{role: 'user', content: 'hi'}], options: {num_ctx: 8192}};

test('R106: num_ctx is told as a wish for the node that has so much, and not as the policy of the client', t => {
  const {read: call} = read(talk);
  if (call.kind !== 'call') return t.fail();
  t.deepEqual([call.request.policyFrom, formatPolicy(call.request.policy)], ['context', `prefer=${node('B')}`]);
});

test('R106: whoever says where a request may run means it, also with num_ctx', t => {
  const {read: call} = read(talk, {policy: 'auto'});
  if (call.kind !== 'call') return t.fail();
  t.deepEqual([call.request.policyFrom, formatPolicy(call.request.policy)], ['header', 'auto']);
});

test('a model that the key may not use does not stand in for one that cannot do it', t => {
  const able = modelReport({digest: digest('d'), capabilities: ['chat', 'tools']});
  const cluster = scriptedCluster(() => {
    throw new Error('nothing is run');
  });
  const find: FindModel = (asked, needs) => ({
    kind: 'known',
    asked,
    target: asked,
    report: needs ? able : report,
    preset: undefined,
  });
  const bytes = Buffer.from(JSON.stringify({model: 'tiny', ...talk, tools: [{}]}));
  const ask = (caller: Caller) => {
    const whole = {id, policy: undefined, traceparent: undefined, contentType: undefined, caller};
    return ollamaRun('chat', {cluster, clock: manualClock(), find}).read(bytes, whole);
  };
  t.like(ask({...notes, rights: {...rights, models: [report.digest]}}), {message: 'tiny does not support tools'});
  t.like(ask(notes), {kind: 'call', request: {model: able.digest}});
});

const unload = {messages: [], keep_alive: 0};

test('S69: a key unloads what it may use, and nothing else', async t => {
  const other = read(unload, {caller: {...notes, rights: {...rights, models: ['other']}}});
  t.like(other.read, {kind: 'problem', status: 403, code: 'forbidden'});
  for (const frame of [{}, {caller: notes}, {caller: {...notes, rights: {...rights, models: ['tiny']}}}]) {
    const {cluster, read: own} = read(unload, frame);
    if (own.kind !== 'immediate') return t.fail();
    await own.answer();
    t.deepEqual(cluster.stopped, ['tiny']);
  }
});
