import {spawn} from 'node:child_process';
import test from 'ava';
import type {EngineStateName, MemoryFacts, StoredModel} from '@hearsay/core';
import {storedModel} from '../../../test/support/engine-trial.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {realEnvironment} from '../../../test/support/environment.ts';
import {openMemoryNotes} from './memory-notes.ts';
import {MemoryProbe} from './memory-probe.ts';
import {ModelNeeds} from './model-needs.ts';
import type {ModelSettings} from './model-needs.ts';
import {RoomKeeper} from './room-keeper.ts';
import type {Tenant} from './room-deps.ts';

/** A model that takes a hundred whatever its size. */
const hundred = (name: string): StoredModel => storedModel(name, `/${name}`, {key: name, needBytes: 100});

interface Options {
  readonly free?: number;
  readonly budgetBytes?: number;
  readonly kind?: MemoryFacts['kind'];
  readonly models?: Readonly<Record<string, ModelSettings>>;
}

/** A keeper of 250 bytes, and engines that change when the test says so. */
async function house({free = 1000, kind = 'ram', models, budgetBytes = 250}: Options = {}) {
  const manual = manualClock();
  const slept = {ms: 0};
  const clock = {...manual, wallMs: () => manual.wallMs() + slept.ms};
  const environment = {...realEnvironment(), clock};
  const tenants = new Map<string, Tenant>();
  const evicted: string[] = [];
  const now: {free: number; processId?: number | undefined} = {free};
  const facts = (): MemoryFacts => ({kind, totalBytes: Math.max(1000, budgetBytes), freeBytes: now.free});
  const probe = new MemoryProbe({ram: facts, devices: async () => []}, {clock});
  await probe.look();
  const config = {slots: 2, contextMax: 2048, extraArguments: [], models, engine: 'test'};
  const needs = new ModelNeeds(config, await openMemoryNotes(undefined, environment), clock);
  const keeper = new RoomKeeper({
    ...environment,
    probe,
    needs,
    budgetBytes,
    tenants: () => [...tenants.values()].map(tenant => ({...tenant, processId: now.processId})),
    async evict(key) {
      evicted.push(key);
      set(key, 'stopped');
    },
  });

  function set(key: string, state: EngineStateName, isUsed = false): void {
    const isKept = needs.settings(hundred(key)).keep === true;
    tenants.set(key, {key, state, isUsed, isKept, loadMs: 5000, waitMs: 0, processId: undefined});
    keeper.changed();
  }

  /** Loads it as a runner would, and uses it so often. */
  async function load(name: string, uses = 1, isUsed = false): Promise<void> {
    const answer = keeper.ask(hundred(name), false);
    if ('kind' in answer) throw new Error(`not accepted: ${JSON.stringify(answer)}`);
    set(name, 'starting', true);
    await keeper.enter(hundred(name));
    set(name, 'ready', isUsed);
    for (let left = uses; left > 0; left -= 1) keeper.used(name);
  }

  return {clock: manual, evicted, keeper, load, now, probe, set, slept};
}

test('two fit; for the third the least used goes, and its memory is counted once', async t => {
  const {evicted, keeper, load} = await house();
  await load('a', 3);
  await load('b', 1);
  t.is(keeper.memory().freeBytes, 50);
  t.is(keeper.memory().totalBytes, 250);
  await load('c', 1);
  t.deepEqual(evicted, ['b']);
});

test('R93: what is lent but has not begun stays, so there is no room and nothing goes', async t => {
  const {evicted, keeper, load} = await house();
  await load('a', 1, true);
  await load('b', 1, true);
  t.like(keeper.ask(hundred('c'), false), {kind: 'busy', reason: 'memory'});
  t.deepEqual(evicted, []);
});

test('R94: a loading model is not chosen as a victim', async t => {
  const {evicted, keeper, load, set} = await house();
  await load('a');
  t.false('kind' in keeper.ask(hundred('b'), false));
  set('b', 'starting');
  await keeper.enter(hundred('b'));
  await load('c');
  t.deepEqual(evicted, ['a']);
  set('c', 'starting');
  t.like(keeper.ask(hundred('d'), false), {kind: 'busy'});
});

test('a model that its owner keeps never goes', async t => {
  const {evicted, load} = await house({models: {A: {keep: true}}});
  await load('a', 0);
  await load('b', 9);
  await load('c', 1);
  t.deepEqual(evicted, ['b']);
});

test('R99: nobody waits for the memory of a model that is kept, and who fits beside it is not held up', async t => {
  const {evicted, keeper, load} = await house({budgetBytes: 150, models: {a: {keep: true}}});
  await load('a');
  const answer = keeper.ask(hundred('b'), true);
  t.like(answer, {kind: 'refused', code: 'memory'});
  t.regex('message' in answer ? answer.message : '', /kept loaded leave only 50 B here: 50 B are missing; stop one/u);
  t.like(keeper.ask({...hundred('small'), needBytes: 40}, false), {slots: 2});
  t.deepEqual(evicted, []);
});

test('R99: the memory of a kept model that is on its way out is waited for', async t => {
  for (const state of ['draining', 'stopping'] as const) {
    const {keeper, load, set} = await house({budgetBytes: 150, models: {a: {keep: true}}});
    await load('a');
    set('a', state);
    t.like(keeper.ask(hundred('b'), false), {kind: 'busy', reason: 'memory'}, state);
    t.like(keeper.ask(hundred('b'), true), {slots: 1}, state);
  }
});

test('R84: memory that other programs take is not promised, and the refusal says so', async t => {
  const {keeper, now} = await house();
  now.free = 60;
  const answer = keeper.ask(hundred('a'), true);
  t.like(answer, {kind: 'refused', code: 'memory'});
  t.regex(
    'message' in answer ? answer.message : '',
    /^a needs at least 100 B .* leave only 60 B here: 40 B are missing/u,
  );
});

test('after a sleep of the machine nothing is promised until its memory has been looked at anew', async t => {
  const {keeper, probe, slept} = await house();
  slept.ms = 3_600_000;
  t.like(keeper.ask(hundred('a'), false), {kind: 'busy', reason: 'memory'});
  t.deepEqual(keeper.ask(hundred('a'), true), {slots: 1, context: 2048}, 'who waits is promised the least');
  await probe.look();
  t.like(keeper.ask(hundred('a'), false), {slots: 2});
});

test('a model larger than all there is is refused with what is missing, and nothing goes for it', async t => {
  const {evicted, keeper, load} = await house();
  await load('a');
  const answer = keeper.ask({...hundred('huge'), needBytes: 300}, true);
  t.regex(
    'message' in answer ? answer.message : '',
    /engine\.memory lets models have 250 B here: 50 B are missing; raise it$/u,
  );
  t.deepEqual(evicted, []);
});

test('who waits is served first come first served, when what works has ended', async t => {
  const {evicted, keeper, load, set} = await house();
  await load('a', 5, true);
  await load('b', 5, true);
  const order: string[] = [];
  const waiting = ['c', 'd'].map(async name => {
    t.false('kind' in keeper.ask(hundred(name), true));
    set(name, 'starting', true);
    await keeper.enter(hundred(name));
    order.push(name);
    set(name, 'ready', true);
  });
  t.like(keeper.ask({...hundred('tiny'), needBytes: 1}, false), {kind: 'busy'}, 'nobody overtakes');
  set('a', 'ready');
  await waiting[0];
  t.deepEqual([order, evicted], [['c'], ['a']]);
  set('b', 'ready');
  await waiting[1];
  t.deepEqual(
    [order, evicted],
    [
      ['c', 'd'],
      ['a', 'b'],
    ],
  );
});

test('who has waited long gets its turn: the engine in its way takes nothing new, but is not disturbed', async t => {
  const {clock, evicted, keeper, load, set} = await house();
  await load('a', 1, true);
  await load('b', 9, true);
  keeper.ask(hundred('c'), true);
  set('c', 'starting', true);
  const entered = keeper.enter(hundred('c'));
  await clock.advance(10_000);
  t.false(keeper.isYielding('a'));
  await clock.advance(8_000);
  t.true(keeper.isYielding('a'));
  t.false(keeper.isYielding('b'), 'the one worth more goes on');
  t.deepEqual(evicted, []);
  set('a', 'ready');
  await entered;
  t.deepEqual(evicted, ['a']);
  t.false(keeper.isYielding('a'));
});

test('a model that is stopped while it waits leaves the line', async t => {
  const {keeper, load, set} = await house();
  await load('a', 1, true);
  await load('b', 1, true);
  keeper.ask(hundred('c'), true);
  set('c', 'starting', true);
  const entered = keeper.enter(hundred('c'));
  set('c', 'stopping');
  await t.throwsAsync(entered, {message: /stopped before there was memory/u});
  set('a', 'ready');
  await load('d');
  t.pass();
});

test('what a ready engine has taken already is not subtracted from free memory once more', async t => {
  const {clock, keeper, load, now} = await house({free: 200});
  await load('a');
  now.free = 100;
  await clock.advance(300);
  t.is(keeper.memory().freeBytes, 100);
  t.false('kind' in keeper.ask(hundred('b'), false));
});

test('what is told to others is measured, and more is never free than there is', async t => {
  const {keeper, now, clock} = await house();
  t.deepEqual(keeper.memory(), {kind: 'ram', totalBytes: 250, freeBytes: 250});
  now.free = 20;
  await clock.advance(300);
  t.is(keeper.memory().freeBytes, 20);
});

const isLinux = process.platform === 'linux';
const onLinux = isLinux ? test : test.skip;
if (!isLinux) console.log('skipped: the memory of a process, which only Linux tells page by page');

onLinux('R106: pages of its file count as free already, so that they are no memory to start it anew in', async t => {
  const large = storedModel('large', '/large', {key: 'large', needBytes: 100e6});
  const {keeper, now, set} = await house({free: 200e6, budgetBytes: 250e6});
  t.false('kind' in keeper.ask(large, false));
  set('large', 'starting');
  await keeper.enter(large);
  set('large', 'ready');
  const engine = spawn('sleep', ['60']); // a process that has taken nearly nothing for itself
  t.teardown(() => engine.kill());
  now.processId = engine.pid;
  t.is(keeper.contextAnew(large), 2048);
  now.free = 50e6;
  t.is(keeper.contextAnew(large), 0);
});
