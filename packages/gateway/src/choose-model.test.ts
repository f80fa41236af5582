import test from 'ava';
import {Fault} from '@hearsay/core';
import type {Cluster} from '@hearsay/core';
import {scriptedCluster} from '../../../test/support/scripted-cluster.ts';
import type {Aliases} from './aliases.ts';
import {chooseModel} from './choose-model.ts';

const known = new Set(['writer', 'reader', 'summarise', 'writer@spark']);

function route({model}: Parameters<Cluster['route']>[0]): ReturnType<Cluster['route']> {
  if (!known.has(model)) throw new Fault('MODEL_NOT_FOUND', `${model} is nowhere`);
  throw new Fault('NO_CANDIDATE', 'known, and that is enough');
}

function chosen(asked: string, aliases: Aliases = {}, defaultModel?: string): string {
  const cluster = {...scriptedCluster(() => Promise.reject(new Error('nobody is asked'))), route};
  return chooseModel(asked, {aliases, defaultModel, cluster});
}

test('a request without a name goes to the configured model, which may be an alias, else to whatever the mesh decides', t => {
  t.is(chosen('', {}, 'reader'), 'reader');
  t.is(chosen(' ', {big: 'writer'}, 'big'), 'writer');
  t.is(chosen('', {'*': 'writer'}), 'writer');
  t.is(chosen('', {'*': 'writer'}, 'reader'), 'reader');
  t.is(chosen(''), '');
});

test('an alias for every name stands for those that nobody knows', t => {
  const aliases = {'*': 'writer', 'claude-*': 'reader'};
  t.is(chosen('gpt-4', aliases), 'writer');
  t.is(chosen('claude-3', aliases), 'reader');
  for (const name of known) t.is(chosen(name, aliases), name);
  t.is(chosen('gpt-4'), 'gpt-4', 'without it such a name is an error');
});
