import test from 'ava';
import {readModels} from './external-model.ts';
import type {ExternalModel} from './external-model.ts';

const facts = {engine: 'ext', capabilities: ['chat'], context: 4096} as const;
const meta = {n_vocab: 768, n_ctx: 512, n_ctx_train: 2048, n_params: 393_856, size: 788_992, ftype: 'F16'};

function read(...data: readonly unknown[]): readonly ExternalModel[] {
  return readModels({object: 'list', data}, facts) ?? [];
}

test("llama-server's list tells size, context and quantization", t => {
  const [model] = read({id: 'tiny', meta});
  t.like(model, {
    id: 'tiny',
    context: 512,
    stored: {names: ['tiny'], sizeBytes: 788_992, contextMax: 2048, quant: 'F16'},
  });
});

test("vLLM's list tells the context, and a list that tells nothing gets what the owner has set", t => {
  t.is(read({id: 'Qwen/Qwen3-8B', max_model_len: 32_768})[0]?.context, 32_768);
  t.is(read({id: 'x'})[0]?.context, 4096);
});

test('R78: a model that is called by its path keeps its folder for itself', t => {
  const [model] = read({id: '/home/ann/models/tiny.gguf', meta});
  t.deepEqual(model?.stored.names, ['tiny']);
  t.is(model?.id, '/home/ann/models/tiny.gguf', 'the engine itself must hear it as it is');
  t.deepEqual(read({id: 'org/repo:Q8_0'})[0]?.stored.names, ['org/repo:Q8_0']);
});

test('equal models of two servers are one, and different ones of one name are two', t => {
  const digests = [
    read({id: 'a', meta}),
    read({id: 'a', meta}),
    read({id: 'a', meta: {...meta, size: 1}}),
    read({id: 'b', meta}),
  ];
  const [first, same, other, renamed] = digests.map(models => models[0]?.stored.digest);
  t.is(first, same);
  t.is(new Set([first, other, renamed]).size, 3);
});

test('what is no list of models is none, and nonsense in a list is left out', t => {
  for (const answer of [undefined, 7, {}, {data: 'x'}, []]) t.is(readModels(answer, facts), undefined);
  t.deepEqual(read(null, 7, {}, {id: ''}, {id: 5}), []);
  t.like(read({id: 'a', meta: {size: -1, n_params: 'x', n_ctx: Infinity}})[0], {context: 4096, stored: {sizeBytes: 0}});
  t.is(read(...Array.from({length: 500}, (_, index) => ({id: `m${index}`}))).length, 100);
});
