import {readFile, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import {storedModel, temporaryFolder} from '../../../test/support/engine-trial.ts';
import {LoadTimes} from './load-times.ts';

const small = storedModel('small', '/models/small.gguf', {sizeBytes: 1e9});
const large = storedModel('large', '/models/large.gguf', {sizeBytes: 10e9});

test('a load is expected to take as long as the last one, and a new model in proportion to its size', async t => {
  const times = await LoadTimes.open(undefined, () => {});
  t.true(times.expectedMs(small) > 0, 'a guess before anything is known');
  times.note(small, 2_000);
  t.is(times.expectedMs(small), 2_000);
  t.is(times.expectedMs(large), 20_000);
  times.note(small, 500);
  t.is(times.expectedMs(small), 500);
});

test('load times survive a restart, and a damaged file costs nothing but them', async t => {
  const file = join(await temporaryFolder(t), 'load-times.json');
  const times = await LoadTimes.open(file, t.fail);
  times.note(small, 2_000);
  times.note(large, 9_000);
  await times.saved();
  t.is((await LoadTimes.open(file, t.fail)).expectedMs(large), 9_000);
  for (const damaged of ['', '{"loads":7}', '{"loads":[["x"],[1,2],["y",{"ms":"1"}]]}', '[]', '\0']) {
    await writeFile(file, damaged);
    t.is(
      (await LoadTimes.open(file, t.fail)).expectedMs(large),
      (await LoadTimes.open(undefined, t.fail)).expectedMs(large),
    );
  }
});

test('five hundred models are remembered, the ones loaded last', async t => {
  const file = join(await temporaryFolder(t), 'load-times.json');
  const times = await LoadTimes.open(file, t.fail);
  for (let index = 0; index < 510; index += 1) times.note({...small, key: `model ${index}`}, index);
  await times.saved();
  const text = await readFile(file, 'utf8');
  t.true(text.includes('"model 509"'));
  t.false(text.includes('"model 9"'));
});

test('a folder that cannot be written is named in the log and is no failure', async t => {
  const messages: string[] = [];
  const times = await LoadTimes.open(
    '/nowhere/at-all/load-times.json',
    (_level, message) => void messages.push(message),
  );
  times.note(small, 1);
  await times.saved();
  t.deepEqual(messages, ['cannot remember how long a load took']);
});
