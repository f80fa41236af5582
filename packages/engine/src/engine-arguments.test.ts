import type {ModelShape} from '@hearsay/core';
import test from 'ava';
import {storedModel} from '../../../test/support/engine-trial.ts';
import {engineArguments, engineEnvironment} from './engine-arguments.ts';
import type {EngineSettings} from './engine-arguments.ts';

const settings: EngineSettings = {slots: 4, contextMax: 8192, threads: undefined, cacheRamMiB: 0, extraArguments: []};
const shape: ModelShape = {
  weightsBytes: 0,
  copiedBytes: 0,
  projectorBytes: 0,
  embeddingLength: 0,
  feedForwardLength: 0,
  queryLength: 0,
  vocabularySize: 0,
  caches: [],
  contextMax: 0,
};
const chatModel = storedModel('Tiny Count', '/models/a.gguf', {contextMax: 2048});

test('S8: an engine is one process with the whole model: context, slots, cache, alias, address and nothing else is said', t => {
  t.deepEqual(engineArguments(chatModel, settings, 4000), [
    '-m',
    '/models/a.gguf',
    '--alias',
    'Tiny Count',
    '--host',
    '127.0.0.1',
    '--port',
    '4000',
    '-c',
    '8192',
    '-np',
    '4',
    '--cache-ram',
    '0',
    '--no-ui',
    '--offline',
  ]);
});

test('a slot gets the context that the model was trained for, or less where the owner says so', t => {
  const pool = (contextMax: number): string | undefined => {
    const words = engineArguments({...chatModel, contextMax}, settings, 1);
    return words[words.indexOf('-c') + 1];
  };
  t.deepEqual([pool(2048), pool(131_072), pool(0)], ['8192', '32768', '32768']);
});

test('only embedding and rerank models are started as such', t => {
  t.true(engineArguments({...chatModel, capabilities: ['embeddings']}, settings, 1).includes('--embeddings'));
  t.true(engineArguments({...chatModel, capabilities: ['rerank']}, settings, 1).includes('--rerank'));
  t.false(engineArguments({...chatModel, capabilities: ['chat', 'embeddings']}, settings, 1).includes('--embeddings'));
});

test('a model that only reads takes texts as long as its context in one batch', t => {
  const words = engineArguments({...chatModel, capabilities: ['embeddings'], contextMax: 2048}, settings, 1);
  t.deepEqual(words.slice(-5), ['--embeddings', '-b', '2048', '-ub', '2048']);
});

test('R79: a projector is handed over, and a comma in a name does not make two names of it', t => {
  const model = {...chatModel, names: ['a, b'], projector: '/models/p.gguf'} as const;
  const words = engineArguments(model, settings, 1);
  t.deepEqual(words.slice(0, 6), ['-m', '/models/a.gguf', '--alias', 'a_ b', '--mmproj', '/models/p.gguf']);
});

test('images that must be read in one step are no larger than the step, also where the owner has chosen that', t => {
  const limit = (extraArguments: readonly string[], wholeImages: boolean = true): string | undefined => {
    const model = {...chatModel, projector: '/models/p.gguf', shape: {...shape, wholeImages}};
    const words = engineArguments(model, {...settings, extraArguments}, 1);
    return words.includes('--image-max-tokens') ? words[words.indexOf('--image-max-tokens') + 1] : undefined;
  };
  t.is(limit([]), '512');
  t.is(limit(['-ub', '1024']), '1024');
  t.is(limit(['-b', '256', '--ubatch-size', '1024']), '256');
  t.is(limit(['-ub', '2048']), '1120', 'the most that the model was made for');
  t.is(limit([], false), undefined);
});

test('a step that is smaller than the least image makes that smaller too', t => {
  const model = {...chatModel, projector: '/models/p.gguf', shape: {...shape, wholeImages: true}};
  const words = (step: string): string =>
    engineArguments(model, {...settings, extraArguments: ['-ub', step]}, 1).join(' ');
  t.regex(words('64'), / --image-max-tokens 64 --image-min-tokens 64 /u);
  t.notRegex(words('70'), /--image-min-tokens/u);
});

test("the owner's own arguments come last", t => {
  const words = engineArguments(chatModel, {...settings, threads: 3, extraArguments: ['-ngl', '0']}, 1);
  t.deepEqual(words.slice(-4), ['-t', '3', '-ngl', '0']);
});

test('the child gets what it needs to run and no secrets', t => {
  const inherited = {
    PATH: '/bin',
    CUDA_VISIBLE_DEVICES: '0',
    HF_TOKEN: 'x',
    LLAMA_ARG_PORT: '1',
    LLAMA_API_KEY: 'old',
    HOME: undefined,
  };
  t.deepEqual(engineEnvironment(inherited, 'key'), {
    PATH: '/bin',
    CUDA_VISIBLE_DEVICES: '0',
    LLAMA_API_KEY: 'key',
    GGML_NO_BACKTRACE: '1',
    LLAMA_SERVER_ROUTER_PORT: '0',
  });
});
