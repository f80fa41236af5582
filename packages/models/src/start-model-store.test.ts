import {createHash} from 'node:crypto';
import {copyFile, mkdir, readFile, rename, rm, symlink, writeFile} from 'node:fs/promises';
import {basename, join} from 'node:path';
import test from 'ava';
import {Fault, isProven, toDigest} from '@hearsay/core';
import {countFile, makeModelPlace, named, otherFile, sha256Of, shardFiles} from '../../../test/support/model-place.ts';
import {tinyFile, until, untilProven} from '../../../test/support/model-place.ts';
import {demoModelPath} from './demo-model.ts';
import {startModelStore} from './start-model-store.ts';

const [shard1, shard2] = shardFiles;

test('S64: a model is found by the sha256 of its file, and the digest is what sha256sum prints', async t => {
  const {models, config, environment} = await makeModelPlace(t, []);
  await mkdir(join(models, 'org', 'repo'), {recursive: true});
  const path = join(models, 'org', 'repo', countFile);
  await copyFile(await tinyFile(countFile), path);
  await using store = await startModelStore(config, environment);
  await untilProven(store);
  const digest = toDigest(`sha256:${(await sha256Of(path)).toString('hex')}`);
  const model = store.find(digest);
  t.is(model?.digest, digest);
  t.deepEqual(model?.files, [path]);
  t.is(model?.hashed, undefined);
  t.is(model?.problem, undefined);
  t.is(model?.sizeBytes, (await readFile(path)).length);
  t.is(model?.architecture, 'llama');
  t.is(model?.quant, 'F16');
  t.is(store.find(toDigest(`unproven:${model?.key}`)), model);
  t.is(store.find(toDigest(`sha256:${'0'.repeat(64)}`)), undefined);
});

test('R78: no name of a model holds a path', async t => {
  const {config, environment} = await makeModelPlace(t, [countFile, ...shardFiles]);
  await using store = await startModelStore(config, environment);
  t.deepEqual(
    store.list().map(({names}) => names),
    [['tiny-count-F16'], ['tiny-split']],
  );
});

test('a folder that does not exist is BAD_CONFIG and the message names it', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile]);
  for (const folder of [join(models, 'gone'), join(models, countFile)]) {
    const fault = await t.throwsAsync(startModelStore({...config, folders: [folder]}, environment), {
      instanceOf: Fault,
    });
    t.is(fault?.code, 'BAD_CONFIG');
    t.true(fault?.message.includes(folder));
  }
});

test('R73: shards are one model with the size of all, and a missing one makes it ineligible', async t => {
  const {models, config, environment} = await makeModelPlace(t, shardFiles);
  const [first, second] = [join(models, shard1), join(models, shard2)];
  await using store = await startModelStore(config, environment);
  await untilProven(store);
  const whole = named(store, 'tiny-split');
  t.is(store.list().length, 1);
  t.deepEqual(whole?.files, [first, second]);
  t.is(whole?.sizeBytes, (await readFile(first)).length + (await readFile(second)).length);
  const digests = createHash('sha256')
    .update(await sha256Of(first))
    .update(await sha256Of(second));
  t.is(whole?.digest.toString(), `sha256:${digests.digest('hex')}`);

  await rm(second);
  await until('the model is incomplete', () => named(store, 'tiny-split')?.problem !== undefined);
  const cut = named(store, 'tiny-split');
  t.is(cut?.problem, 'incomplete: shard 2 of 2 is missing');
  t.is(cut?.key, whole?.key);
  t.is(whole && store.find(whole.digest), undefined);
  t.is(cut && store.find(cut.digest), undefined);
});

test('R76: linked shards are handed on under the names of the links', async t => {
  const {models, config, environment} = await makeModelPlace(t, []);
  await mkdir(join(models, 'snapshot'));
  for (const [index, shard] of shardFiles.entries()) {
    await copyFile(await tinyFile(shard), join(models, `blob${index}`));
    await symlink(`../blob${index}`, join(models, 'snapshot', shard));
  }
  await using store = await startModelStore(config, environment);
  const model = named(store, 'tiny-split');
  t.is(model?.problem, undefined);
  t.deepEqual(model?.files, [join(models, 'snapshot', shard1), join(models, 'snapshot', shard2)]);
});

test('R76: a shard under a name that is no shard name is listed with the reason', async t => {
  const {models, config, environment} = await makeModelPlace(t, shardFiles);
  await rename(join(models, shard1), join(models, 'whole.gguf'));
  await rm(join(models, shard2));
  await using store = await startModelStore(config, environment);
  t.regex(named(store, 'whole')?.problem ?? '', /one of 2 shards/u);
});

test('damaged files are listed with the reason and cannot be asked for', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile]);
  const bytes = await readFile(join(models, countFile));
  await writeFile(join(models, 'empty.gguf'), '');
  await writeFile(join(models, 'page.gguf'), '<html>not a model</html>');
  await writeFile(join(models, 'header.gguf'), bytes.subarray(0, 1000));
  await writeFile(join(models, 'weights.gguf'), bytes.subarray(0, -100_000));
  await using store = await startModelStore(config, environment);
  await untilProven(store);
  t.is(store.list().length, 5);
  for (const name of ['empty', 'page', 'header', 'weights']) {
    const model = named(store, name);
    t.truthy(model?.problem, name);
    t.is(model && store.find(model.digest), undefined, name);
  }
  t.regex(named(store, 'weights')?.problem ?? '', /incomplete/u);
  t.is(named(store, 'tiny-count-F16')?.problem, undefined);
});

test('equal bytes in two places are one model that survives the loss of either', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile]);
  await mkdir(join(models, 'copy'));
  await copyFile(await tinyFile(countFile), join(models, 'copy', 'renamed.gguf'));
  await using store = await startModelStore(config, environment);
  const before = store.list();
  await until('they are one', () => store.list().length === 1);
  const [model] = store.list();
  t.deepEqual(model?.names, ['renamed', 'tiny-count-F16']);
  for (const {key} of before) t.is(store.find(toDigest(`unproven:${key}`)), model);
  await rm(join(models, 'copy', 'renamed.gguf'));
  await until('the other place is used', () => basename(store.list()[0]?.files[0] ?? '') === countFile);
  t.is(model && store.find(model.digest)?.digest, model?.digest);
});

test('equal names with different bytes are two models', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile]);
  await mkdir(join(models, 'b'));
  await copyFile(await tinyFile(otherFile), join(models, 'b', countFile));
  await using store = await startModelStore(config, environment);
  await untilProven(store);
  t.deepEqual(
    store.list().map(({names}) => names),
    [['tiny-count-F16'], ['tiny-count-F16']],
  );
  t.is(new Set(store.list().map(({digest}) => digest)).size, 2);
});

test('the toy is offered as a demo, and a missing toy is only a warning', async t => {
  const {config, environment, warnings} = await makeModelPlace(t, [countFile]);
  {
    await using store = await startModelStore({...config, demoModel: demoModelPath}, environment);
    t.deepEqual(
      store.list().map(({names, demo}) => [names[0], demo]),
      [
        ['tiny-count-F16', false],
        ['hearsay-demo', true],
      ],
    );
    t.is(named(store, 'hearsay-demo')?.problem, undefined);
    t.deepEqual(warnings, []);
  }
  await using store = await startModelStore({...config, folders: [], demoModel: '/nowhere/toy.gguf'}, environment);
  t.deepEqual(store.list(), []);
  t.is(warnings.length, 1);
});

test('a second start knows the digests at once and reads no file again', async t => {
  const {config, environment} = await makeModelPlace(t, [countFile, otherFile, ...shardFiles]);
  {
    await using store = await startModelStore(config, environment);
    await untilProven(store);
  }
  await using store = await startModelStore(config, environment);
  t.is(store.list().length, 3);
  t.true(store.list().every(({digest}) => isProven(digest)));
});

test('a disposed listener hears nothing more, and a closed store leaves no timer behind', async t => {
  const {models, config, environment} = await makeModelPlace(t, [countFile]);
  const {clock} = environment;
  let timers = 0;
  const after: typeof clock.after = (ms, run) => {
    let isOpen = true;
    timers += 1;
    function end(): void {
      if (isOpen) timers -= 1;
      isOpen = false;
    }
    const timer = clock.after(ms, () => {
      end();
      run();
    });
    return {
      [Symbol.dispose]: () => {
        end();
        timer[Symbol.dispose]();
      },
    };
  };
  const store = await startModelStore(config, {...environment, clock: {...clock, after}});
  const heard = {kept: 0, disposed: 0};
  const listener = store.onChange(() => (heard.disposed += 1));
  store.onChange(() => (heard.kept += 1));
  await untilProven(store);
  await until('the proof is told', () => heard.kept > 0);
  listener[Symbol.dispose]();
  const before = {...heard};
  await copyFile(await tinyFile(otherFile), join(models, otherFile));
  await until('the addition is told', () => heard.kept > before.kept);
  t.is(heard.disposed, before.disposed);
  await store[Symbol.asyncDispose]();
  t.is(timers, 0);
});

test('what an engine says that has loaded a model is listed and told once, until the file changes', async t => {
  const place = await makeModelPlace(t, [countFile]);
  await using store = await startModelStore(place.config, place.environment);
  await untilProven(store);
  const model = named(store, 'tiny-count-F16');
  if (model === undefined) return t.fail();
  t.false(model.capabilities.includes('tools'));
  let changes = 0;
  using _ = store.onChange(() => (changes += 1));
  const told = {
    context: 2048,
    sees: false,
    hears: false,
    chatTemplate: 'x',
    isTemplateChosen: true,
    callsTools: true,
  };
  store.confirm(model.key, told);
  store.confirm(model.key, told);
  store.confirm('no such key', told);
  await until('it is told', () => changes === 1);
  t.true(named(store, 'tiny-count-F16')?.capabilities.includes('tools'));
  t.is(store.find(model.digest)?.digest, model.digest, 'it stays what it is');

  await writeFile(join(place.models, countFile), await readFile(await tinyFile(otherFile)));
  await until('the new file is listed', () => named(store, 'tiny-count-F16')?.quant === 'Q4_0');
  t.false(named(store, 'tiny-count-F16')?.capabilities.includes('tools'));
});
