import test from 'ava';
import {modelReport} from '../../../test/support/scripted-cluster.ts';
import {listModels} from './list-models.ts';

const aliases = {'gpt-small': 'tiny'};

test("llama-server's own list stands in that of the models, in the same order, and says what each can do", t => {
  const models = [
    modelReport(),
    modelReport({name: 'seer', names: ['seer'], capabilities: ['chat', 'vision']}),
    modelReport({name: 'rank', names: ['rank'], capabilities: ['rerank']}),
    modelReport({name: 'broken', names: ['broken'], problem: 'cut off'}),
  ];
  const list = listModels(models, 1, aliases);
  t.like(list, {
    data: [{id: 'tiny'}, {id: 'seer'}, {id: 'rank'}, {id: 'gpt-small', display_name: 'gpt-small (tiny)'}],
    models: [
      {name: 'tiny', model: 'tiny', capabilities: ['completion']},
      {name: 'seer', model: 'seer', capabilities: ['completion', 'vision', 'multimodal']},
      {name: 'rank', model: 'rank', capabilities: ['rerank']},
      {name: 'gpt-small', model: 'gpt-small', capabilities: ['completion']},
    ],
    first_id: 'tiny',
    last_id: 'gpt-small',
  });
});

test('a model that only ranks is no embedder in it, because requests for embeddings are refused', t => {
  const ranker = modelReport({capabilities: ['rerank']});
  const seer = modelReport({capabilities: ['chat', 'vision']});
  const told = (model: typeof ranker): unknown => listModels([model], 1, {})['models'];
  t.regex(JSON.stringify(told(ranker)), /"capabilities":\["rerank"\]/u);
  t.regex(JSON.stringify(told(seer)), /"capabilities":\["completion","vision","multimodal"\]/u);
});

test('no date, size or digest in it is an empty text, which clients would take for one', t => {
  const {models} = listModels([modelReport()], 1, {});
  t.like(models, [{modified_at: '1970-01-01T00:00:01.000Z', size: 788_992, details: {quantization_level: 'F16'}}]);
  t.regex(JSON.stringify(models), /"digest":"[\da-f]{64}"/u);
});

test('a list without models is empty in both forms', t => {
  t.like(listModels([], 1, {}), {data: [], models: [], first_id: null, last_id: null});
});
