import {readFile, stat, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {temporaryFolder} from '../../../test/support/engine-trial.ts';
import {openMemoryNotes} from './memory-notes.ts';
import type {LoadKey} from './memory-notes.ts';

const load: LoadKey = {digest: 'sha256:aa', context: 4096, slots: 2, place: 'ram', engine: 'llama-server 1'};

test('what a load really took is the next estimate of the same load, also after a restart', async t => {
  const file = join(await temporaryFolder(t), 'deep', 'memory.json');
  {
    await using notes = await openMemoryNotes(file, realEnvironment());
    t.is(notes.correct(load, 1000), 1000);
    notes.note(load, 1000, 1300);
    t.is(notes.correct(load, 1000), 1300);
  }
  t.is((await stat(file)).mode & 0o777, 0o600);
  await using again = await openMemoryNotes(file, realEnvironment());
  t.is(again.correct(load, 1000), 1300);
});

test('another size of the same model is corrected by the same amount', async t => {
  await using notes = await openMemoryNotes(undefined, realEnvironment());
  notes.note(load, 1000, 1300);
  t.is(notes.correct({...load, context: 8192}, 5000), 5300);
  t.is(notes.correct({...load, slots: 1}, 500), 800);
});

const others: readonly Partial<LoadKey>[] = [{digest: 'sha256:bb'}, {place: 'device'}, {engine: 'llama-server 2'}];
for (const other of others) {
  test(`a note says nothing about another ${Object.keys(other).join()}`, async t => {
    await using notes = await openMemoryNotes(undefined, realEnvironment());
    notes.note(load, 1000, 1300);
    t.is(notes.correct({...load, ...other}, 1000), 1000);
  });
}

test('a measurement that cannot be true is not noted', async t => {
  await using notes = await openMemoryNotes(undefined, realEnvironment());
  notes.note(load, 1000, 5);
  t.is(notes.correct(load, 1000), 1000);
});

test('a damaged file costs what was remembered, and is written anew', async t => {
  const file = join(await temporaryFolder(t), 'memory.json');
  await writeFile(file, '{"version":1,"loads":[{"digest":5},{}]');
  {
    await using notes = await openMemoryNotes(file, realEnvironment());
    t.is(notes.correct(load, 1000), 1000);
    notes.note(load, 1000, 900);
  }
  t.regex(await readFile(file, 'utf8'), /"takenBytes":900/u);
});

test('the notes are bounded: the oldest go', async t => {
  await using notes = await openMemoryNotes(undefined, realEnvironment());
  for (let index = 0; index < 600; index += 1) notes.note({...load, digest: `sha256:${index}`}, 1000, 2000);
  t.is(notes.correct({...load, digest: 'sha256:0'}, 1000), 1000);
  t.is(notes.correct({...load, digest: 'sha256:599'}, 1000), 2000);
});
