import {mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {testEngine} from '../../../test/support/engine-trial.ts';
import {provideEngine} from './provide-engine.ts';

test('a second start takes the version of the same engine from the cache of the machine', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-provide-'));
  t.teardown(() => rm(folder, {recursive: true, force: true}));
  const wish = {path: testEngine(), searchPath: '', cacheFolder: join(folder, 'not', 'yet'), mayInstall: false};
  const terminal = {isInteractive: false, out: () => {}, error: () => {}};
  const provide = () => provideEngine(wish, {...realEnvironment(), terminal}, AbortSignal.timeout(60_000));

  const first = await provide();
  t.true(typeof first !== 'string' && first.version !== undefined);
  const file = join(wish.cacheFolder, 'engine-versions.json');
  const kept = await readFile(file, 'utf8');
  await writeFile(file, kept.replace(/"version":"[^"]+"/u, '"version":"as remembered"'));
  t.like(await provide(), {command: wish.path, source: 'config', version: 'as remembered'});
});
