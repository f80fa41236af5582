import {copyFile, mkdir, readFile, rename, rm, symlink} from 'node:fs/promises';
import {join} from 'node:path';
import {monitorEventLoopDelay} from 'node:perf_hooks';
import test from 'ava';
import {hangingMount, whyNoHangingMount} from '../../../test/support/hanging-mount.ts';
import {countFile, makeModelPlace, named, otherFile, tinyFile} from '../../../test/support/model-place.ts';
import {until, untilProven} from '../../../test/support/model-place.ts';
import {startModelStore} from './start-model-store.ts';

const missing = whyNoHangingMount();
if (missing !== undefined) console.log(`tests with a drive that hangs are skipped: ${missing}`);
const driveTest = missing === undefined ? test.serial : test.skip;

driveTest('a drive that hangs holds up neither the start, nor other places, nor other files, nor the end', async t => {
  const {models, config, environment, warnings} = await makeModelPlace(t, [countFile]);
  const {clock} = environment;
  const away = join(models, '..', 'away');
  await mkdir(away);
  using drive = hangingMount(away);
  t.teardown(() => drive[Symbol.dispose]());
  const delay = monitorEventLoopDelay({resolution: 1});
  delay.enable();
  const store = await startModelStore({...config, folders: [away, models]}, environment);
  await untilProven(store);
  t.truthy(named(store, 'tiny-count-F16'));
  t.true(warnings.some(warning => warning.includes(away) && warning.includes('does not answer')));

  await copyFile(await tinyFile(otherFile), join(models, otherFile));
  await until('other places are kept current', () => named(store, 'tiny-other-Q4_0') !== undefined);
  t.true((await readFile(join(models, countFile))).length > 0);
  delay.disable();
  t.log(`event loop: median ${ms(delay.percentile(50))}, 99 % ${ms(delay.percentile(99))}, longest ${ms(delay.max)}`);
  t.true(delay.percentile(50) < 50e6, ms(delay.percentile(50)));

  const closingMs = clock.monotonicMs();
  await store[Symbol.asyncDispose]();
  t.true(clock.monotonicMs() - closingMs < 4000);
});

driveTest('S74: a drive that begins to hang takes its models along, and brings them back when it answers', async t => {
  const {models, config, environment} = await makeModelPlace(t, []);
  const [drive, away] = [join(models, '..', 'drive'), join(models, '..', 'away')];
  await mkdir(drive);
  await mkdir(away);
  await copyFile(await tinyFile(countFile), join(drive, countFile));
  await copyFile(await tinyFile(otherFile), join(models, otherFile));
  await symlink(drive, join(models, '..', 'net'));
  const folders = [join(models, '..', 'net'), models];
  await using store = await startModelStore({...config, folders}, environment);
  await untilProven(store);
  t.is(store.list().length, 2);

  {
    using _ = hangingMount(away);
    await symlink(away, join(models, '..', 'next'));
    await rename(join(models, '..', 'next'), join(models, '..', 'net'));
    await until('its models are gone', () => store.list().length === 1);
    t.truthy(named(store, 'tiny-other-Q4_0'));
  }
  await rm(join(models, '..', 'net'));
  await symlink(drive, join(models, '..', 'net'));
  await until('they are back', () => store.list().length === 2);
});

const ms = (nanoseconds: number): string => `${(nanoseconds / 1e6).toFixed(1)} ms`;
