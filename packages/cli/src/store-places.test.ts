import test from 'ava';
import {isStoreText, storeNames, storePlaces} from './store-places.ts';

const ada = {home: '/home/ada', variables: {}, platform: 'linux'} as const;
const places = (texts: readonly string[], changes: Partial<Parameters<typeof storePlaces>[1]> = {}) =>
  storePlaces(texts, {...ada, ...changes}).map(({kind, path}) => `${kind} ${path}`);

test('S2: without configuration the models of other programs are looked for where these programs keep them', t => {
  t.deepEqual(places(storeNames), [
    'huggingface /home/ada/.cache/huggingface/hub',
    'ollama /home/ada/.ollama/models',
    'ollama /usr/share/ollama/.ollama/models',
    'lmstudio /home/ada/.lmstudio/models',
    'lmstudio /home/ada/.cache/lm-studio/models',
    'llama.cpp /home/ada/.cache/llama.cpp',
  ]);
});

test('the variables of other programs say where their models are', t => {
  const variables = {OLLAMA_MODELS: '/o', LLAMA_CACHE: '/l', HF_HOME: '/hf', XDG_CACHE_HOME: '/c'};
  t.deepEqual(places(['ollama'], {variables}), ['ollama /o']);
  t.deepEqual(places(['llama.cpp'], {variables}), ['llama.cpp /l']);
  t.deepEqual(places(['huggingface'], {variables}), ['huggingface /l', 'huggingface /hf/hub']);
  t.deepEqual(places(['huggingface'], {variables: {HF_HOME: '/hf', HF_HUB_CACHE: '/hub'}}), ['huggingface /hub']);
  t.deepEqual(places(['huggingface'], {variables: {XDG_CACHE_HOME: '/c', HF_HOME: ''}}), [
    'huggingface /c/huggingface/hub',
  ]);
});

test("llama.cpp's cache is where the system keeps caches", t => {
  t.deepEqual(places(['llama.cpp'], {platform: 'darwin'}), ['llama.cpp /home/ada/Library/Caches/llama.cpp']);
  t.deepEqual(places(['ollama'], {platform: 'darwin'}), ['ollama /home/ada/.ollama/models']);
});

test('a store can be pointed elsewhere or left out, and nothing else counts as one', t => {
  t.deepEqual(places(['ollama=/srv/m', 'ollama', 'LMStudio=/x']), [
    'ollama /srv/m',
    'ollama /home/ada/.ollama/models',
    'ollama /usr/share/ollama/.ollama/models',
    'lmstudio /x',
  ]);
  t.deepEqual(places([]), []);
  t.false(['olama', 'folder', 'hearsay', '', 'ollama='].some(isStoreText));
});
