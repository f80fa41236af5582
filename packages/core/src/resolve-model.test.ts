import test from 'ava';
import {digest} from '../../../test/support/builders.ts';
import {resolveModel} from './resolve-model.ts';
import type {NamedModel} from './resolve-model.ts';

const named = (name: string, letter: string, changes: Partial<NamedModel> = {}): NamedModel => ({
  names: [name],
  digest: digest(letter),
  demo: false,
  local: false,
  holders: 1,
  ...changes,
});

const qwen = named('Qwen3-0.6B-Q8_0', 'a');
const llama = named('llama-3.2-1b', 'b');

test('R64, C55: names are found whatever their case, and with :latest', t => {
  for (const asked of ['qwen3-0.6b-q8_0', 'QWEN3-0.6B-Q8_0', ' Qwen3-0.6B-Q8_0 ', 'qwen3-0.6b-q8_0:latest']) {
    t.deepEqual(resolveModel(asked, [qwen, llama]), {kind: 'found', digests: [digest('a')], name: 'Qwen3-0.6B-Q8_0'});
  }
});

test('a digest, its first twelve digits, and name@sha256:… select one model', t => {
  const other = named('llama-3.2-1b', 'c');
  const asked = ['sha256:' + 'c'.repeat(64), 'c'.repeat(12), `llama-3.2-1b@sha256:${'c'.repeat(64)}`];
  for (const one of asked) t.like(resolveModel(one, [llama, other]), {digests: [digest('c')]}, one);
});

test('R69: one name with two contents goes to the own one, else to what most nodes hold', t => {
  const here = named('m', 'b', {local: true});
  const there = named('m', 'c', {holders: 5});
  t.like(resolveModel('m', [there, here]), {digests: [digest('b')]});
  t.like(resolveModel('m', [named('m', 'b'), there]), {digests: [digest('c')]});
});

test('an unknown name comes back with close ones', t => {
  t.deepEqual(resolveModel('qwen3-0.6b-q8', [qwen, llama]), {kind: 'unknown', close: ['Qwen3-0.6B-Q8_0']});
  t.deepEqual(resolveModel('lama-3.2-1b', [qwen, llama]), {kind: 'unknown', close: ['llama-3.2-1b']});
  t.deepEqual(resolveModel('gpt-4o', [qwen, llama]), {kind: 'unknown', close: []});
});

test('no name means the only model; the toy counts only while nothing else is known', t => {
  const toy = named('hearsay-demo', 'd', {demo: true});
  t.like(resolveModel('', [toy]), {digests: [digest('d')]});
  t.like(resolveModel('', [toy, llama]), {digests: [digest('b')]});
  t.deepEqual(resolveModel('', [qwen, llama]), {kind: 'unnamed', known: ['Qwen3-0.6B-Q8_0', 'llama-3.2-1b']});
  t.like(resolveModel('hearsay-demo', [toy, llama]), {digests: [digest('d')]});
});
