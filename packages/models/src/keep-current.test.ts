import {copyFile, mkdir, open, readFile, rename, rm, symlink, truncate, utimes, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import {isProven} from '@hearsay/core';
import type {Environment} from '@hearsay/core';
import {countFile, makeModelPlace, otherFile, sha256Of, tinyFile} from '../../../test/support/model-place.ts';
import {until, untilProven} from '../../../test/support/model-place.ts';
import {startModelStore} from './start-model-store.ts';

/** Two seconds on a machine that does nothing else; well before everything is listed anew after fifteen. */
const noticedWithinMs = 5 * 2000;

test('S74, S78: a deleted model is out of the list by itself within two seconds, and an added one is in it', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile]);
  const {clock} = environment;
  await using store = await startModelStore(config, environment);
  await untilProven(store);
  const [model] = store.list();
  let changes = 0;
  using _ = store.onChange(() => (changes += 1));
  const deletedAtMs = clock.monotonicMs();
  await rm(join(models, countFile));
  await until('the model is gone', () => store.list().length === 0 && changes > 0);
  t.true(clock.monotonicMs() - deletedAtMs < noticedWithinMs);
  t.is(model && store.find(model.digest), undefined);

  await mkdir(join(models, 'deep', 'er'), {recursive: true});
  const addedAtMs = clock.monotonicMs();
  await copyFile(await tinyFile(otherFile), join(models, 'deep', 'er', otherFile));
  await until('the model is there', () => store.list().length === 1);
  t.true(clock.monotonicMs() - addedAtMs < noticedWithinMs);
  await until('it is complete and proven', () => store.list().every(({digest}) => isProven(digest)));
});

test('S74: what is deleted where nothing is watched is gone within two seconds too', async t => {
  const {models, config, environment} = await makeModelPlace(t, []);
  // More folders than are watched; the last one is the one that matters.
  await Promise.all(Array.from({length: 520}, (_, index) => mkdir(join(models, `a${index}`))));
  await mkdir(join(models, 'z'));
  await copyFile(await tinyFile(countFile), join(models, 'z', countFile));
  await using store = await startModelStore(config, environment);
  t.is(store.list().length, 1);
  const deletedAtMs = environment.clock.monotonicMs();
  await rm(join(models, 'z', countFile));
  await until('the model is gone', () => store.list().length === 0);
  t.true(environment.clock.monotonicMs() - deletedAtMs < noticedWithinMs);
});

test('S64: a file that another one replaces is a new model at once, and the old digest is not found', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile]);
  await using store = await startModelStore(config, environment);
  await untilProven(store);
  const [old] = store.list();
  await copyFile(await tinyFile(otherFile), join(models, 'next.part'));
  await rename(join(models, 'next.part'), join(models, countFile));
  await until('the new digest is proven', () => store.list().some(m => isProven(m.digest) && m.digest !== old?.digest));
  const [now] = store.list();
  t.is(now?.digest.toString(), `sha256:${(await sha256Of(await tinyFile(otherFile))).toString('hex')}`);
  t.is(now?.key, old?.key);
  t.is(old && store.find(old.digest), undefined);
});

test('S64: one changed byte makes a file unproven until it is hashed again', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile]);
  const path = join(models, countFile);
  await utimes(path, 1, 1);
  await using store = await startModelStore(config, environment);
  await untilProven(store);
  const [old] = store.list();
  const file = await open(path, 'r+');
  const {size} = await file.stat();
  await file.write(Buffer.from([1, 2, 3]), 0, 3, size - 3);
  await file.close();
  await until('the change is seen', () => store.list().some(({digest}) => !isProven(digest)));
  t.is(old && store.find(old.digest), undefined);
  await until('it is proven again', () => store.list().some(({digest}) => isProven(digest)));
  t.is(store.list()[0]?.digest.toString(), `sha256:${(await sha256Of(path)).toString('hex')}`);
  t.is(store.list()[0]?.problem, undefined);
});

test('a file that is being written is incomplete until it is whole and left alone', async t => {
  const {models, config, environment} = await makeModelPlace(t, []);
  const bytes = await readFile(await tinyFile(countFile));
  await using store = await startModelStore(config, environment);
  const file = await open(join(models, countFile), 'w');
  t.teardown(() => file.close().catch(() => {}));
  for (const part of [0, 1, 2, 3]) {
    await file.write(bytes.subarray((part * bytes.length) / 4, ((part + 1) * bytes.length) / 4));
    if (part === 3) break;
    // Between its making and its first bytes it may have been seen as an empty file.
    await until('it is incomplete', () => /incomplete/u.test(store.list()[0]?.problem ?? ''));
    t.is(store.list().length, 1);
  }
  await file.close();
  await until('it is usable', () => store.list()[0]?.problem === undefined);
  await untilProven(store);
  t.is(store.list()[0]?.digest.toString(), `sha256:${(await sha256Of(await tinyFile(countFile))).toString('hex')}`);
});

test('a folder that goes away takes its models along with a warning, and brings them back', async t => {
  const {models, config, environment, warnings} = await makeModelPlace(t, [countFile]);
  await using store = await startModelStore(config, environment);
  await rename(models, `${models}-away`);
  await until('the models are gone', () => store.list().length === 0);
  t.is(warnings.filter(warning => warning.includes(models)).length, 1);
  await rename(`${models}-away`, models);
  await until('the models are back', () => store.list().length === 1);
});

test('while a large file is hashed it can be used under its local key, and its progress is seen', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile]);
  await truncate(join(models, countFile), 2 ** 30);
  await using store = await startModelStore(config, environment);
  const [model] = store.list();
  t.is(model?.digest.toString(), `unproven:${model?.key}`);
  t.is(model && store.find(model.digest)?.key, model?.key);
  await until('progress', () => {
    const hashed = store.list()[0]?.hashed ?? 0;
    return hashed > 0.05 && hashed < 1;
  });
  await rm(join(models, countFile));
  await until('it is gone', () => store.list().length === 0);
});

test('a file of full size is incomplete while somebody still writes into it', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile]);
  const path = join(models, countFile);
  await using store = await startModelStore(config, environment);
  await untilProven(store);
  await using file = await open(path, 'r+');
  const {size} = await file.stat();
  await file.write('abc', size - 3);
  await until('the writing is seen', () => /still being written/u.test(store.list()[0]?.problem ?? ''));
  await until('it counts as whole again', () => store.list()[0]?.problem === undefined);
  t.is(store.list().length, 1);
});

/**
 * An environment without polls: timers of half a second or more never go off. Its time passes only while somebody
 * waits: after an event a store gathers others for as long as its last look took, on a busy machine as long as a poll.
 */
function withoutPolls(environment: Environment) {
  const {clock} = environment;
  const never = {[Symbol.dispose]: () => {}};
  const seen = {rests: 0};
  let nowMs = 0;
  const after: typeof clock.after = (ms, run) => {
    const dueMs = nowMs + ms;
    // So long it leaves alone what is watched; a call to a disk may take longer.
    if (ms > 1000 && ms <= 2000) seen.rests += 1;
    if (ms >= 500) return never;
    return clock.after(ms, () => {
      nowMs = Math.max(nowMs, dueMs);
      run();
    });
  };
  const sleep: typeof clock.sleep = async (ms, signal) => {
    await clock.sleep(ms, signal);
    nowMs += Math.max(1, ms);
  };
  return {seen, environment: {...environment, clock: {...clock, monotonicMs: () => nowMs, after, sleep}}};
}

test('where folders can be watched, a change is seen without any poll', async t => {
  const {models, config, ...place} = await makeModelPlace(t, [countFile]);
  const {environment} = withoutPolls(place.environment);
  await using store = await startModelStore(config, environment);
  await mkdir(join(models, 'deep'));
  await rename(join(models, countFile), join(models, 'deep', countFile));
  await until('the model is found below', () => store.list()[0]?.files[0] === join(models, 'deep', countFile));
  await rm(join(models, 'deep', countFile));
  await until('the model is gone', () => store.list().length === 0);
  t.deepEqual(store.list(), []);
});

/** Puts a link to a model that lies outside, under a name that is no model's; resolves with the path of its bytes. */
async function linkElsewhere(models: string): Promise<string> {
  const elsewhere = join(models, '..', 'elsewhere');
  const bytes = join(elsewhere, 'bytes');
  await mkdir(elsewhere);
  await copyFile(await tinyFile(countFile), bytes);
  await symlink(bytes, join(models, countFile));
  return bytes;
}

test('S74: where a link leads out of the folders that are looked into, its target is missed without any poll', async t => {
  const {models, config, ...place} = await makeModelPlace(t, []);
  const {environment, seen} = withoutPolls(place.environment);
  const bytes = await linkElsewhere(models);
  await using store = await startModelStore(config, environment);
  await untilProven(store);
  t.is(store.list().length, 1);
  await until('all is watched', () => seen.rests > 0);
  await rm(bytes);
  await until('the model is gone', () => store.list().length === 0);
});

const isLinux = process.platform === 'linux';
const linuxTest = isLinux ? test : test.skip;
if (!isLinux) console.log('skipped: what a watch alone tells of files written in place, which is so on Linux only');

linuxTest('a file without the ending of models that is written in place is noticed without any poll', async t => {
  const {models, config, ...place} = await makeModelPlace(t, []);
  const {environment, seen} = withoutPolls(place.environment);
  const bytes = await linkElsewhere(models);
  await using store = await startModelStore(config, environment);
  await untilProven(store);
  await until('nothing is compared any more', () => seen.rests > 0);
  await truncate(bytes, 1000);
  await until('it is not offered any more', () => store.list().every(({problem}) => problem !== undefined));
  t.is(store.list().length, 1);
});

linuxTest('a store at rest is left alone for two seconds at a time', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile]);
  const {clock} = environment;
  const stores = [{kind: 'ollama', path: join(models, '..', 'no-such-store')}] as const;
  const waits: number[] = [];
  const after: typeof clock.after = (ms, run) => {
    waits.push(ms);
    return clock.after(ms, run);
  };
  await using store = await startModelStore({...config, stores}, {...environment, clock: {...clock, after}});
  await untilProven(store);
  const isLong = (ms: number): boolean => ms > 1000 && ms <= 2000;
  await until('it rests', () => waits.filter(isLong).length > 0);
  const before = waits.length;
  await until('it has rested twice more', () => waits.slice(before).filter(isLong).length >= 2);
  // A look may be due anyway, as every fifteen seconds, and something is compared soon after it.
  const short = waits.slice(before).filter(ms => ms <= 1000);
  t.true(short.length <= 1, short.join());
});

linuxTest('a large store is left alone for longer, so that it costs no more at rest', async t => {
  const {models, config, environment} = await makeModelPlace(t, []);
  await Promise.all(Array.from({length: 159}, (_, index) => mkdir(join(models, `a${index}`))));
  const {clock} = environment;
  const waits: number[] = [];
  const after: typeof clock.after = (ms, run) => {
    waits.push(ms);
    return clock.after(ms, run);
  };
  await using _store = await startModelStore(config, {...environment, clock: {...clock, after}});
  await until('it rests for 160 times 25 ms', () => waits.some(ms => ms > 3500 && ms <= 4000));
  t.pass();
});

test('what comes between a look and the beginning of the watch is found soon', async t => {
  const {models, config, ...place} = await makeModelPlace(t, []);
  const {environment} = withoutPolls(place.environment);
  const {clock} = environment;
  const deep = join(models, 'deep');
  await mkdir(deep);
  // After the folders have been listed, and before they are watched, a look gives the event loop a turn.
  let turns = 0;
  const sleep: typeof clock.sleep = async (ms, signal) => {
    turns += 1;
    if (turns === 1) await copyFile(await tinyFile(countFile), join(deep, countFile));
    return clock.sleep(ms, signal);
  };
  await using store = await startModelStore(config, {...environment, clock: {...clock, sleep}});
  t.deepEqual(store.list(), []);
  await until('the model is found', () => store.list().length === 1);
});

test('a store that is there without anything in it is not listed again and again', async t => {
  const {models, config, environment} = await makeModelPlace(t, []);
  const store = join(models, '..', 'ollama');
  await mkdir(store);
  const {clock} = environment;
  // A look gives the event loop two turns by sleeping for no time; one may be due anyway, as every fifteen seconds.
  let turns = 0;
  const sleep: typeof clock.sleep = (ms, signal) => {
    if (ms === 0) turns += 1;
    return clock.sleep(ms, signal);
  };
  let rests = 0;
  const after: typeof clock.after = (ms, run) => {
    if (ms >= 499 && ms <= 2000) rests += 1;
    return clock.after(ms, run);
  };
  const places = {...config, stores: [{kind: 'ollama', path: store} as const]};
  await using opened = await startModelStore(places, {...environment, clock: {...clock, after, sleep}});
  const turnsBefore = turns;
  await until('it has rested three times', () => rests >= 3);
  t.true(turns - turnsBefore <= 2, `${turns - turnsBefore} turns`);
  await mkdir(join(store, 'manifests', 'registry.ollama.ai', 'library', 'count'), {recursive: true});
  await mkdir(join(store, 'blobs'));
  await copyFile(await tinyFile(countFile), join(store, 'blobs', `sha256-${'0'.repeat(64)}`));
  const layer = {mediaType: 'application/vnd.ollama.image.model', digest: `sha256:${'0'.repeat(64)}`, size: 1};
  const manifest = join(store, 'manifests', 'registry.ollama.ai', 'library', 'count', 'latest');
  await writeFile(manifest, JSON.stringify({schemaVersion: 2, layers: [layer]}));
  await until('what comes is found', () => opened.list().length === 1);
});
