import test from 'ava';
import type {FileStamp} from './file-stamp.ts';
import {describeMissing, groupShards} from './group-shards.ts';

function file(path: string): FileStamp {
  return {path, sizeBytes: 10, mtimeMs: 1, inode: 1};
}

function summary(paths: readonly string[]): readonly unknown[] {
  return groupShards(paths.map(file)).map(group => [
    group.name,
    group.files.map(({path}) => path),
    describeMissing(group),
  ]);
}

test('R73: shards are one model, in the order of their numbers', t => {
  t.deepEqual(summary(['/a/m-00003-of-00003.gguf', '/a/m-00001-of-00003.gguf', '/a/m-00002-of-00003.gguf']), [
    ['m', ['/a/m-00001-of-00003.gguf', '/a/m-00002-of-00003.gguf', '/a/m-00003-of-00003.gguf'], undefined],
  ]);
});

test('R73: a missing shard makes the model incomplete, and the message says which', t => {
  const first = '/a/m-00001-of-00002.gguf';
  t.deepEqual(summary([first]), [['m', [first], 'incomplete: shard 2 of 2 is missing']]);
  const last = '/a/n-00002-of-00002.gguf';
  t.deepEqual(summary([last]), [['n', [last], 'incomplete: shard 1 of 2 is missing']]);
});

test('many missing shards are counted rather than listed', t => {
  const [group] = groupShards([file('/a/m-00002-of-00006.gguf')]);
  t.is(group && describeMissing(group), 'incomplete: shards 1, 3, 4 and 2 more of 6 are missing');
});

test('shards of other folders, stems or counts do not complete a model', t => {
  const lonely = [
    '/a/m-00001-of-00002.gguf',
    '/b/m-00002-of-00002.gguf',
    '/a/n-00002-of-00002.gguf',
    '/a/m-00002-of-00003.gguf',
  ];
  t.is(summary(lonely).length, 4);
});

test('a file without a shard suffix stands alone, also beside one of its name', t => {
  t.deepEqual(summary(['/a/m.gguf', '/a/m-00001-of-00001.gguf']), [
    ['m', ['/a/m.gguf'], undefined],
    ['m', ['/a/m-00001-of-00001.gguf'], undefined],
  ]);
});
