import test from 'ava';
import {openDoor} from './file-door.ts';
import {listModels} from './list-models.ts';
import type {Holding} from './list-models.ts';

const facts = {
  needBytes: 1,
  architecture: 'llama',
  quant: 'Q8_0',
  parameters: 1,
  contextMax: 1,
  capabilities: [],
} as const;

function holding(name: string, hash: string | undefined, changes: Partial<Holding> = {}): Holding {
  return {
    key: `key-${name}`,
    names: [name],
    demo: false,
    projector: undefined,
    presets: [],
    door: openDoor,
    files: [{path: `/${name}.gguf`, sizeBytes: 10, mtimeMs: 5, inode: 1}],
    problem: undefined,
    description: {kind: 'usable', ...facts},
    hashes: [hash?.repeat(64)],
    ...changes,
  };
}

function summary(...holdings: readonly Holding[]): readonly unknown[] {
  const {models} = listModels(holdings, () => 0.5);
  return models.map(({names, demo, hashed, problem}) => ({names, demo, hashed, problem}));
}

test('a copy of the toy that somebody put into a folder is no demo any more, and keeps both names', t => {
  t.deepEqual(summary(holding('hearsay-demo', 'a', {demo: true}), holding('mine', 'a')), [
    {names: ['mine', 'hearsay-demo'], demo: false, hashed: undefined, problem: undefined},
  ]);
});

test('S64: a model with a problem is never merged with a whole one, nor found', t => {
  const damaged = holding('damaged', 'a', {problem: 'incomplete'});
  const {models, byDigest} = listModels([damaged, holding('whole', 'a')], () => 0);
  t.deepEqual(
    models.map(({names, digest}) => [names[0], digest.slice(0, 8)]),
    [
      ['damaged', 'unproven'],
      ['whole', 'sha256:a'],
    ],
  );
  t.deepEqual(
    [...byDigest.values()].map(({key}) => key),
    ['key-whole', 'key-whole'],
  );
});

test('a model is unproven while one of its files is, and tells how far hashing is', t => {
  const files = [holding('m', 'a').files[0], {path: '/m2.gguf', sizeBytes: 30, mtimeMs: 9, inode: 2}] as const;
  const split = holding('m', 'a', {files: [files[0], files[1]], hashes: ['a'.repeat(64), undefined]});
  t.deepEqual(summary(split), [{names: ['m'], demo: false, hashed: 0.5, problem: undefined}]);
  const [model] = listModels([split], () => 0.5).models;
  t.is(model?.sizeBytes, 40);
  t.is(model?.modifiedWallMs, 9);
});

test('what has not been read yet is not listed', t => {
  t.deepEqual(summary(holding('m', undefined, {description: undefined})), []);
});
