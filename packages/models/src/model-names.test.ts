import test from 'ava';
import {isModelFileName, modelNameOf, parseShardName} from './model-names.ts';

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

test('projectors, draft models, hidden files and other extensions are no models of their own', t => {
  for (const name of [
    'mmproj-F16.gguf',
    'mmproj.gguf',
    'MMPROJ-model.gguf',
    'mtp-x.gguf',
    'eagle3-x.gguf',
    'dflash-x.gguf',
    'dspark-x.gguf',
    '._m.gguf',
    'm.safetensors',
    'm.gguf.part',
    'gguf',
  ]) {
    t.false(isModelFileName(name), name);
  }
  t.true(isModelFileName('mtpleasant.gguf'));
  t.true(isModelFileName('m.GGUF'));
});
