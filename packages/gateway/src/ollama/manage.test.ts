import {mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import {modelReport} from '../../../../test/support/scripted-cluster.ts';
import type {FindModel, Preset} from './known-model.ts';
import {readCopy, readCreation, readDeletion} from './manage.ts';
import {isModelName, tagged} from './model-name.ts';
import {openPresets} from './presets.ts';

const report = modelReport();
const preset: Preset = {
  name: 'mine:latest',
  from: 'tiny',
  system: 'be',
  parameters: {seed: 1},
  messages: [],
  license: '',
  madeWallMs: 1,
};
const find: FindModel = asked => {
  if (asked === 'mine') return {kind: 'known', asked, target: 'tiny', report, preset};
  const isTiny = asked === 'tiny' || asked === report.digest;
  return isTiny ? {kind: 'known', asked, target: asked, report, preset: undefined} : undefined;
};

test('create makes a name with presets from a model, from another such name, or from a digest', t => {
  t.like(readCreation({model: 'a', from: 'tiny', system: 's', parameters: {seed: 2}}, find, 5), {
    preset: {name: 'a:latest', from: 'tiny', system: 's', parameters: {seed: 2}, madeWallMs: 5},
  });
  t.like(readCreation({model: 'a', from: 'mine', parameters: {top_k: 1}}, find, 5), {
    preset: {from: 'tiny', system: 'be', parameters: {seed: 1, top_k: 1}},
  });
  t.like(readCreation({model: 'a', files: {'m.gguf': report.digest}}, find, 5), {preset: {from: report.digest}});
});

for (const [what, body, message] of [
  ['no name', {from: 'tiny'}, /^model is required$/u],
  ['a bad name', {model: '../x', from: 'tiny'}, /^invalid model name$/u],
  ['the name of a model', {model: 'tiny', from: 'tiny'}, /exists already/u],
  ['an unknown base', {model: 'a', from: 'nope'}, /^pull model manifest: file does not exist: .*"nope"/u],
  ['nothing to make it from', {model: 'a'}, /^neither 'from' or 'files' was specified$/u],
  ['files of another kind', {model: 'a', files: {'m.safetensors': 'sha256:x'}}, /GGUF/u],
  ['an unknown file', {model: 'a', files: {'m.gguf': 'sha256:x'}}, /digest of m\.gguf.*upload.*models\.folders/u],
  ['a quantization', {model: 'a', from: 'tiny', quantize: 'q4_0'}, /quantiz/u],
  ['an adapter', {model: 'a', from: 'tiny', adapters: {x: 'y'}}, /adapters/u],
  ['a template', {model: 'a', from: 'tiny', template: '{{ . }}'}, /templates/u],
  [
    'a bad parameter',
    {model: 'a', from: 'tiny', parameters: {top_k: 'x'}},
    /^option "top_k" must be of type integer$/u,
  ],
] as const) {
  test(`create with ${what} is refused`, t => {
    const problem = readCreation(body, find, 0);
    t.regex(problem.kind === 'problem' ? problem.message : 'no problem', message);
  });
}

test('copy gives a model or a preset another name; it does not hide a model', t => {
  t.like(readCopy({source: 'mine', destination: 'b:v1'}, find, 9), {name: 'b:v1', from: 'tiny', system: 'be'});
  t.like(readCopy({source: 'tiny', destination: 'b'}, find, 9), {name: 'b:latest', from: 'tiny', system: ''});
  t.like(readCopy({source: 'nope', destination: 'b'}, find, 9), {status: 404, message: 'model "nope" not found'});
  t.like(readCopy({source: 'mine', destination: 'tiny'}, find, 9), {status: 400});
});

test('delete removes presets, and says where the files of a model are', t => {
  t.is(readDeletion({model: 'mine'}, find), preset);
  t.like(readDeletion({model: 'nope'}, find), {status: 404, message: "model 'nope' not found"});
  const refused = readDeletion({model: 'tiny'}, find);
  t.regex('message' in refused ? refused.message : '', /does not delete files.*spark/u);
});

for (const name of ['a', 'a:b', 'a/b', 'hf.co/user/repo:Q4_K_M', 'host.x:8080/space/model:tag', 'Q4_K.M-1']) {
  test(`${name} is a name that a model may have`, t => t.true(isModelName(name)));
}

for (const name of ['', ' ', '../x', 'a//b', '/a', 'a:', 'a b', '.a', 'a\n', 'a:b:c', 'x'.repeat(201)]) {
  test(`${JSON.stringify(name.slice(0, 20))} is no name for a model`, t => t.false(isModelName(name)));
}

test('a name gets a tag unless it has one after its last slash', t => {
  t.deepEqual(['a', 'a:b', 'h:1/a', 'h:1/a:b'].map(tagged), ['a:latest', 'a:b', 'h:1/a:latest', 'h:1/a:b']);
});

test('presets are kept in a file, found without case and tag, and gone when removed', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-presets-'));
  t.teardown(() => rm(folder, {recursive: true}));
  const file = join(folder, 'names.json');
  const presets = await openPresets(file);
  await Promise.all([presets.put(preset), presets.put({...preset, name: 'other:v1'})]);
  const again = await openPresets(file);
  t.deepEqual(again.find('MINE'), preset);
  t.is(again.find('other'), undefined);
  t.true(await again.remove('mine:latest'));
  t.false(await again.remove('mine'));
  t.false((await readFile(file, 'utf8')).includes('mine'));
});

test('a damaged file of presets is named, and not overwritten', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-presets-'));
  t.teardown(() => rm(folder, {recursive: true}));
  const file = join(folder, 'names.json');
  await writeFile(file, '{"presets": [');
  await t.throwsAsync(openPresets(file), {message: /names\.json is damaged/u});
});
