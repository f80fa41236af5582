import test from 'ava';
import {digest, node} from '../../../test/support/builders.ts';
import {hostedChoices} from './hosted.ts';
import type {HostedQuestion, HostedService} from './hosted.ts';
import {parsePolicy} from './policy.ts';

const service = (name: string, letter: string, pattern: string): HostedService => ({
  name,
  worker: {node: node(letter), offer: async () => ({kind: 'refused', code: 'policy', message: ''})},
  models: [{pattern, digest: digest(letter.toLowerCase())}],
  waitMsMax: 30_000,
});

const services = [service('acme', 'A', 'qwen*'), service('bolt', 'B', 'llama')];

function chosen(policy: string, changes: Partial<HostedQuestion> = {}): readonly string[] {
  const question = {names: ['qwen3:8b'], policy: parsePolicy(policy), caller: undefined, ...changes};
  return hostedChoices(services, question).map(({service: {name}}) => name);
}

test('S84, S85: only local-preferred may leave, and local-required is what holds unless somebody says otherwise', t => {
  t.deepEqual(chosen('auto'), []);
  t.deepEqual(chosen('local-required'), []);
  t.deepEqual(chosen('prefer=spark'), []);
  t.deepEqual(chosen('local-preferred'), ['acme']);
  t.deepEqual(chosen('prefer=spark;local-preferred'), ['acme']);
});

test('S93: a pinned request never leaves, not even to a service of that name', t => {
  t.deepEqual(chosen('pin=spark;local-preferred'), []);
  t.deepEqual(chosen('pin=acme;local-preferred'), []);
});

test('a service stands in only for names it is mapped to, and not where it is excluded', t => {
  t.deepEqual(chosen('local-preferred', {names: ['m', 'LLAMA']}), ['bolt']);
  t.deepEqual(chosen('local-preferred', {names: ['other']}), []);
  t.deepEqual(chosen('local-preferred;exclude=acme'), []);
});

test('a key that names nodes allows a service only by its name', t => {
  const caller = (nodes: readonly string[] | undefined) => ({
    name: 'notes',
    rights: {models: undefined, workloads: undefined, policies: undefined, nodes},
    policy: undefined,
  });
  t.deepEqual(chosen('local-preferred', {caller: caller(['spark'])}), []);
  t.deepEqual(chosen('local-preferred', {caller: caller(['spark', 'acme'])}), ['acme']);
  t.deepEqual(chosen('local-preferred', {caller: caller(undefined)}), ['acme']);
});
