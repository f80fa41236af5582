import test from 'ava';
import type {JsonObject} from '../json.ts';
import {translateOptions} from './options.ts';

const contextMax = 4096;

const translations: readonly (readonly [JsonObject, JsonObject])[] = [
  [{num_predict: 8}, {n_predict: 8}],
  [{num_predict: -1}, {}],
  [{num_predict: -2}, {}],
  [{num_predict: 0}, {n_predict: 0}],
  [{repeat_last_n: 64}, {repeat_last_n: 64}],
  [{repeat_last_n: 0}, {repeat_last_n: 0}],
  [{repeat_last_n: -1}, {repeat_last_n: contextMax}],
  [{repeat_last_n: -1, num_ctx: 2048}, {repeat_last_n: 2048}],
  [{num_keep: 4}, {n_keep: 4}],
  [{num_keep: -7}, {n_keep: -1}],
  [{seed: -1}, {seed: -1}],
  [{top_k: 40.7}, {top_k: 40}],
  [
    {temperature: 0, top_p: 0.5, min_p: 0.1, typical_p: 1},
    {temperature: 0, top_p: 0.5, min_p: 0.1, typical_p: 1},
  ],
  [{stop: ['a', '', 'b']}, {stop: ['a', 'b']}],
  [{stop: 'a'}, {stop: ['a']}],
  [{stop: null, temperature: undefined}, {}],
  [{num_gpu: 99, num_thread: 4, use_mmap: true, num_batch: 512}, {}],
  [{whatever: 'else'}, {}],
];

for (const [options, fields] of translations) {
  test(`options ${JSON.stringify(options)} become ${JSON.stringify(fields)}`, t => {
    const translated = translateOptions(options, contextMax);
    t.like(translated, {kind: 'options', fields});
    t.deepEqual(translated.kind === 'options' ? translated.fields : undefined, fields);
  });
}

const refused: readonly (readonly [JsonObject, string])[] = [
  [{top_k: 'many'}, 'option "top_k" must be of type integer'],
  [{temperature: '0.5'}, 'option "temperature" must be of type float32'],
  [{use_mmap: 1}, 'option "use_mmap" must be of type boolean'],
  [{stop: [1]}, 'option "stop" must be of type array'],
  [{num_ctx: true}, 'option "num_ctx" must be of type integer'],
];

for (const [options, message] of refused) {
  test(`options ${JSON.stringify(options)} are refused in Ollama's words`, t => {
    t.like(translateOptions(options, contextMax), {kind: 'problem', status: 400, message});
  });
}

test('R106: num_ctx is a wish about the node, and nothing that is sent to the engine', t => {
  t.like(translateOptions({num_ctx: 8192}, contextMax), {fields: {}, contextTokens: 8192});
});
