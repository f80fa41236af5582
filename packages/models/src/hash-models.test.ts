import {readFile, stat, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import {countFile, makeModelPlace, otherFile, sha256Of, until} from '../../../test/support/model-place.ts';
import {untilProven} from '../../../test/support/model-place.ts';
import {startModelStore} from './start-model-store.ts';

test('S64: a digest that was remembered long ago is read again, and corrected when the disk has forgotten', async t => {
  const {models, config, environment, warnings} = await makeModelPlace(t, [countFile]);
  const path = join(models, countFile);
  const {size, mtimeMs, ino} = await stat(path);
  const wrong = 'ab'.repeat(32);
  const entry = {path, sizeBytes: size, mtimeMs, inode: ino, sha256: wrong};
  await writeFile(config.digestCacheFile, JSON.stringify({version: 1, files: [{...entry, checkedWallMs: 1}]}));
  await using store = await startModelStore(config, environment);
  const right = `sha256:${(await sha256Of(path)).toString('hex')}`;
  await until('it is corrected', () => store.list()[0]?.digest.toString() === right);
  t.true(warnings.some(warning => warning.includes('not what they were')));
});

test('a digest that was checked lately is not read again', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile, otherFile]);
  {
    await using store = await startModelStore(config, environment);
    await untilProven(store);
  }
  const before = await readFile(config.digestCacheFile, 'utf8');
  const path = join(models, countFile);
  const hash = (await sha256Of(path)).toString('hex');
  await writeFile(config.digestCacheFile, before.replace(hash, 'ab'.repeat(32)));
  await using store = await startModelStore(config, environment);
  await environment.clock.sleep(300);
  t.true(store.list().some(({digest}) => digest.toString() === `sha256:${'ab'.repeat(32)}`));
});
