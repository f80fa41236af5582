import test from 'ava';
import type {Beat, Digest, KnownNode, NodeId, View} from '@hearsay/core';
import {beat, digest, engineBeat, node} from '../../../test/support/builders.ts';
import {Affinity} from './affinity.ts';
import type {Hits} from './affinity.ts';
import {prefixChain} from './prefix-chain.ts';
import type {PrefixChain} from './prefix-chain.ts';

const model = digest('a');
const turnOne = ['user: '.padEnd(400, 'a')];
const turnTwo = [...turnOne, 'assistant: '.padEnd(200, 'b'), 'user: '.padEnd(400, 'c')];
const chain = (conversation: readonly string[]): PrefixChain => prefixChain('key', conversation);
const self: Beat = beat('S');

function viewOf(changes: Partial<KnownNode> & {readonly engine?: Parameters<typeof engineBeat>[1]} = {}): View {
  const {engine, ...rest} = changes;
  const known: KnownNode = {
    beat: beat('A', {engines: [engineBeat('a', {ageSeconds: 100, ...engine})]}),
    signed: {node: node('A'), payload: new Uint8Array(), signature: new Uint8Array()},
    madeAtMs: 100_000,
    inventory: undefined,
    ...rest,
  };
  return {nodes: new Map([[node('A'), known]]), stamps: new Map()};
}

interface Asking {
  readonly view?: View;
  readonly session?: string;
  readonly digests?: readonly Digest[];
  readonly nowMs?: number;
}

function hits(affinity: Affinity, conversation: readonly string[], asking: Asking = {}): Hits {
  const {view = viewOf(), session, digests = [model], nowMs = 100_000} = asking;
  return affinity.hits({chain: chain(conversation), session, digests}, self, view, nowMs);
}

/** The share of the prompt that node A is thought to know. */
const share = (...given: Parameters<typeof hits>): number | undefined => hits(...given).get(node('A'));

function sentTo(id: NodeId, conversation: readonly string[], session?: string): Affinity {
  const affinity = new Affinity();
  affinity.sent(id, model, chain(conversation), session, 50_000);
  return affinity;
}

test('where a conversation has been, as much of it as was sent there is known', t => {
  t.is(share(sentTo(node('A'), turnOne), turnTwo), 0.4);
  t.is(share(sentTo(node('A'), turnOne), turnOne), 1);
  t.is(share(sentTo(node('A'), turnOne), ['something else']), undefined);
});

test('a long message that differs at its end is known up to there', t => {
  const text = 'x'.repeat(10_240);
  const known = share(sentTo(node('A'), [`${text}old`]), [`${text}new`]) ?? 0;
  t.true(known > 0.9 && known < 1);
});

test('an engine that was loaded after that remembers nothing, nor does another model', t => {
  const affinity = sentTo(node('A'), turnOne);
  t.is(share(affinity, turnTwo, {view: viewOf({engine: {ageSeconds: 10}})}), undefined);
  t.is(share(affinity, turnTwo, {view: viewOf({engine: {readiness: 'loading'}})}), undefined);
  t.is(share(affinity, turnTwo, {digests: [digest('b')]}), undefined);
});

test('an engine keeps the conversations of few requests: those before are forgotten', t => {
  const affinity = sentTo(node('A'), turnOne);
  const other = (index: number): void => affinity.sent(node('A'), model, chain([`other ${index}`]), undefined, 60_000);
  for (let index = 0; index < 7; index += 1) other(index);
  t.is(share(affinity, turnTwo), 0.4);
  other(7);
  t.is(share(affinity, turnTwo), undefined);
});

test('a session that the client names stays together though its text has changed', t => {
  const affinity = sentTo(node('A'), turnOne, 'session 1');
  const changed = ['summary of what was said', 'user: more'.padEnd(376)];
  t.is(share(affinity, changed, {session: 'session 1'}), 1);
  t.is(share(affinity, changed, {session: 'session 2'}), undefined);
  t.is(share(affinity, changed, {session: 'session 1', nowMs: 700_001}), undefined, 'ten minutes later');
});

test('a node that tells of the beginning in its sketch is known to have read it, whoever sent it there', t => {
  const worker = new Affinity();
  worker.served(model, chain(turnOne).ends);
  const sketch = {kind: 'sketch', node: node('A'), boot: 1, sequence: 1, prompts: worker.sketch()} as const;
  t.is(share(new Affinity(), turnTwo, {view: viewOf({sketch})}), 0.4);
  worker.forget(model);
  t.is(worker.sketch().size, 0);
});

test('an expectation that does not come true is trusted less, and more again when it does', t => {
  const affinity = new Affinity();
  t.is(affinity.trust(node('A')), 1);
  for (let index = 0; index < 10; index += 1) affinity.learned(node('A'), 500, 0);
  const low = affinity.trust(node('A'));
  t.true(low < 0.12);
  affinity.learned(node('A'), 500, 500);
  t.true(affinity.trust(node('A')) > low);
});

test('with another key the same text has other hashes', t => {
  const [one] = prefixChain('key', turnOne).hashes;
  const [other] = prefixChain('other', turnOne).hashes;
  t.not(one, other);
});

test('the ends of messages stay the same when the conversation goes on', t => {
  t.deepEqual(chain(turnTwo).ends.slice(0, 1), chain(turnOne).ends);
});
