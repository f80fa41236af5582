import test from 'ava';
import {
  isModelFileName,
  modelNameOf,
  parseShardName,
  projectorClues,
  quantOf,
  roleOf,
  withoutQuant,
} from './model-names.ts';

test('R78: a model is called after its file, without folder, extension or shard suffix', t => {
  t.is(modelNameOf('Qwen2.5-7B-Instruct-Q4_K_M.gguf'), 'Qwen2.5-7B-Instruct-Q4_K_M');
  t.is(modelNameOf('big-Q8_0-00001-of-00013.gguf'), 'big-Q8_0');
  t.is(modelNameOf('LOUD.GGUF'), 'LOUD');
});

test('a name cannot garble a terminal and has a bounded length', t => {
  t.is(modelNameOf('a\u001B[2Jb\n.gguf'), 'a_[2Jb_');
  t.is(modelNameOf(`${'x'.repeat(250)}.gguf`).length, 200);
});

test('a shard suffix is only read as one when its numbers make sense', t => {
  t.deepEqual(parseShardName('m-00002-of-00003.gguf'), {stem: 'm', index: 2, count: 3});
  for (const name of [
    'm-00000-of-00003.gguf',
    'm-00004-of-00003.gguf',
    'm-2-of-3.gguf',
    '-00001-of-00002.gguf',
    'm.gguf',
  ]) {
    t.is(parseShardName(name), undefined, name);
  }
});

test('hidden files and other extensions are no models', t => {
  for (const name of ['._m.gguf', '.gguf', 'm.safetensors', 'm.gguf.part', 'gguf']) {
    t.false(isModelFileName(name), name);
  }
  for (const name of ['m.gguf', 'm.GGUF', 'ü b.gguf']) t.true(isModelFileName(name), name);
});

test('projectors and draft models are told from models by their names', t => {
  for (const name of ['mmproj-F16.gguf', 'mmproj.gguf', 'MMPROJ-model.gguf', 'gemma-mmproj-f16.gguf']) {
    t.is(roleOf(name), 'projector', name);
  }
  for (const name of ['mtp-x.gguf', 'eagle3-x.gguf', 'dflash-x.gguf', 'DSPARK-x.gguf'])
    t.is(roleOf(name), 'draft', name);
  for (const name of ['mtpleasant.gguf', 'xmmprojy.gguf', 'm.gguf']) t.is(roleOf(name), 'model', name);
});

test('R67: the quantization is the end of a stem, whatever its case', t => {
  t.is(quantOf('Qwen3-0.6B-Q8_0'), 'Q8_0');
  t.is(quantOf('llama-2-7b.q4_k_m'), 'Q4_K_M');
  t.is(quantOf('gpt-oss-20b-mxfp4'), 'MXFP4');
  t.is(quantOf('Qwen3-8B-UD-Q4_K_XL'), 'UD-Q4_K_XL');
  for (const stem of ['qwen-3', 'model', 'llama-3-instruct', 'Q', 'quick-Qa']) t.is(quantOf(stem), undefined, stem);
  t.is(withoutQuant('Qwen3-8B-UD-Q4_K_XL'), 'Qwen3-8B');
});

test('what a projector says of its model is what its name has beside that word', t => {
  t.deepEqual(projectorClues('mmproj-F16.gguf'), {before: '', after: ''});
  t.deepEqual(projectorClues('mmproj-model-f16.gguf'), {before: '', after: 'model'});
  t.deepEqual(projectorClues('mmproj-gemma-3-4b-it-f16.gguf'), {before: '', after: 'gemma-3-4b-it'});
  t.deepEqual(projectorClues('gemma-3.mmproj-f16.gguf'), {before: 'gemma-3', after: ''});
});

test('a name is composed the same way wherever it comes from', t => {
  t.is(modelNameOf('mu\u0308ller.gguf'), 'm\u00fcller');
});
