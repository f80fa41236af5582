import test from 'ava';
import {digest} from '../../../test/support/builders.ts';
import {editDistance, resolveModel} from './resolve-model.ts';
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

test('R69: of two contents of one name, the fittest comes before the own one', t => {
  const [here, there] = [named('m', 'b', {local: true}), named('m', 'c')];
  const only = (letter: string) => (model: NamedModel) => Number(model.digest === digest(letter));
  t.like(resolveModel('m', [here, there], only('c')), {digests: [digest('c')]});
  t.like(
    resolveModel('m', [here, there], only('e')),
    {digests: [digest('b')]},
    'none is fitter: then it is the usual one',
  );
  t.like(resolveModel(digest('b'), [here, there], only('c')), {digests: [digest('b')]}, 'a digest means no other');
});

test('two letters in the wrong order are one mistake', t => {
  t.is(editDistance('nmae', 'name'), 1);
  t.is(editDistance('name', 'nmaes'), 2);
  t.is(editDistance('abc', ''), 3);
  t.is(editDistance('', ''), 0);
});

test('an unknown name comes back with close ones', t => {
  t.deepEqual(resolveModel('qwen3-0.6b-q8', [qwen, llama]), {kind: 'unknown', close: ['Qwen3-0.6B-Q8_0']});
  t.deepEqual(resolveModel('lama-3.2-1b', [qwen, llama]), {kind: 'unknown', close: ['llama-3.2-1b']});
  t.deepEqual(
    resolveModel('qwne3', [qwen, llama]),
    {kind: 'unknown', close: ['Qwen3-0.6B-Q8_0']},
    'a mistyped beginning',
  );
  t.deepEqual(resolveModel('gpt-4o', [qwen, llama]), {kind: 'unknown', close: []});
});

test('no name means the only model; the toy counts only while nothing else is known', t => {
  const toy = named('hearsay-demo', 'd', {demo: true});
  t.like(resolveModel('', [toy]), {digests: [digest('d')]});
  t.like(resolveModel('', [toy, llama]), {digests: [digest('b')]});
  t.deepEqual(resolveModel('', [qwen, llama]), {kind: 'unnamed', known: ['Qwen3-0.6B-Q8_0', 'llama-3.2-1b']});
  t.like(resolveModel('hearsay-demo', [toy, llama]), {digests: [digest('d')]});
});

test('R64: case, the tag latest and the usual place make no difference', t => {
  const tagged = named('Llama3.1:latest', 'a');
  for (const asked of [
    'llama3.1',
    'LLAMA3.1:LATEST',
    'library/llama3.1',
    'registry.ollama.ai/library/llama3.1:latest',
  ]) {
    t.like(resolveModel(asked, [tagged, llama]), {digests: [digest('a')], name: 'Llama3.1:latest'}, asked);
  }
  const repository = named('org/Repo-GGUF:Q4_K_M', 'b');
  for (const asked of [
    'org/repo-gguf:q4_k_m',
    'hf.co/org/Repo-GGUF:Q4_K_M',
    'https://huggingface.co/org/Repo-GGUF:Q4_k_m',
  ]) {
    t.like(resolveModel(asked, [repository, llama]), {digests: [digest('b')]}, asked);
  }
  t.like(resolveModel('mu\u0308ller', [named('m\u00fcller', 'c')]), {digests: [digest('c')]});
});

test('R66: a bare name with another tag than latest is not found, and the message says which tag there is', t => {
  const tagged = named('user/m:q4_K_M', 'a');
  t.deepEqual(resolveModel('user/m', [tagged, llama]), {kind: 'unknown', close: ['user/m:q4_K_M']});
});

test('R67: the beginning of a quantization is enough while it means one model', t => {
  const [q8, q4m, q4s] = [named('o/r:Q8_0', 'a'), named('o/r:Q4_K_M', 'b'), named('o/r:Q4_K_S', 'c')];
  t.like(resolveModel('hf.co/o/r:Q8', [q8, q4m, q4s]), {digests: [digest('a')], name: 'o/r:Q8_0'});
  t.deepEqual(resolveModel('o/r:q4', [q8, q4m, q4s]), {kind: 'unknown', close: ['o/r:Q4_K_M', 'o/r:Q4_K_S']});
  t.like(resolveModel('o/r', [q8]), {kind: 'unknown', close: ['o/r:Q8_0']});
});

test('R69: a name with a digest selects one of two contents', t => {
  const [here, there] = [named('m', 'b', {local: true}), named('m', 'c', {holders: 5})];
  t.like(resolveModel('M', [here, there]), {digests: [digest('b')]});
  for (const asked of [`m@${digest('c')}`, `M:latest@${digest('c').slice(0, 19)}`, `@${digest('c')}`]) {
    t.like(resolveModel(asked, [here, there]), {digests: [digest('c')]}, asked);
  }
  t.is(resolveModel(`other@${digest('c')}`, [here, there]).kind, 'unknown');
});
