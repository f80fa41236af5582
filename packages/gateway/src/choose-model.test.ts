import test from 'ava';
import {toDigest} from '@hearsay/core';
import type {Capability, ModelReport} from '@hearsay/core';
import {modelReport} from '../../../test/support/scripted-cluster.ts';
import type {Aliases} from './aliases.ts';
import {chooseModel} from './choose-model.ts';

const named = (name: string, letter: string, ...capabilities: readonly Capability[]): ModelReport =>
  modelReport({name, names: [name], digest: toDigest(`sha256:${letter.repeat(64)}`), capabilities});
const writer = named('writer', 'a', 'chat', 'completion');
const reader = named('reader', 'b', 'embeddings');

interface Settings {
  readonly defaultModel?: string;
  readonly aliases?: Aliases;
  readonly models?: readonly ModelReport[];
}

function chosen(model: string, needs: readonly Capability[], settings: Settings = {}): string {
  return choice(model, needs, settings).model;
}

function choice(model: string, needs: readonly Capability[], settings: Settings = {}): ReturnType<typeof chooseModel> {
  const {defaultModel, aliases = {}, models = [writer, reader]} = settings;
  return chooseModel({model, needs}, {defaultModel, aliases, cluster: {models: () => models}});
}

test('a request without a name goes to the only model that can do it', t => {
  t.is(chosen('', ['chat']), 'writer');
  t.is(chosen(' ', ['embeddings']), 'reader');
  t.is(chosen('', []), 'writer', 'what every model can do is meant for the one that writes');
  t.is(chosen('', ['rerank']), '');
});

test('where several models can do it, a request without a name is left without one', t => {
  t.is(chosen('', ['chat'], {models: [writer, named('other', 'c', 'chat', 'completion')]}), '');
});

test('the toy and models with a problem are not chosen', t => {
  const toy = {...named('toy', 'c', 'chat', 'completion'), demo: true};
  const broken = {...named('broken', 'd', 'chat', 'completion'), problem: 'cut'};
  t.is(chosen('', ['chat'], {models: [toy, broken, writer]}), 'writer');
});

test('the configured model comes before the only one, and may be an alias', t => {
  t.is(chosen('', ['chat'], {defaultModel: 'big', aliases: {big: 'other'}}), 'other');
  t.is(chosen('', ['chat'], {aliases: {'*': 'other'}}), 'other');
});

test('an alias for every name stands for those that no model has', t => {
  const aliases = {'*': 'writer', 'claude-*': 'reader'};
  t.is(chosen('gpt-4', ['chat'], {aliases}), 'writer');
  t.is(chosen('reader', [], {aliases}), 'reader');
  t.is(chosen('claude-3', [], {aliases}), 'reader');
  t.is(chosen('gpt-4', ['chat']), 'gpt-4', 'without it an unknown name is an error');
});

test('S70: tools are asked for where some model of the name has them, and otherwise left to llama-server', t => {
  const user = named('user', 'c', 'chat', 'completion', 'tools');
  const models = [writer, user];
  t.deepEqual(choice('user', ['chat', 'tools'], {models}), {model: 'user', needs: ['chat', 'tools']});
  t.deepEqual(choice('writer', ['chat', 'tools'], {models}), {model: 'writer', needs: ['chat']});
  t.deepEqual(choice('', ['chat', 'tools'], {models}), {model: 'user', needs: ['chat', 'tools']});
  t.deepEqual(choice('', ['chat', 'tools']), {model: 'writer', needs: ['chat']});
  t.deepEqual(choice('unknown', ['chat', 'tools'], {models}), {model: 'unknown', needs: ['chat', 'tools']});
});
