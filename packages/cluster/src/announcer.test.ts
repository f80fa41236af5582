import {createHash} from 'node:crypto';
import test from 'ava';
import type {EngineHost, EngineSnapshot, HardwareFacts, ModelStore, SignedRecord} from '@hearsay/core';
import {decodeInventory, decodeRecord} from '@hearsay/core';
import {digest, node} from '../../../test/support/builders.ts';
import {storedModel} from '../../../test/support/engine-trial.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {startAnnouncer} from './announcer.ts';

const fast: HardwareFacts = {memoryBytesPerSecond: 1000e9, operationsPerSecond: 80e12, diskBytesPerSecond: 1e9};

const stored = storedModel('m', 'm.gguf', {digest: digest('a')});
const engine: EngineSnapshot = {
  key: stored.key,
  model: stored,
  state: 'ready',
  slots: 2,
  busy: 0,
  queued: 0,
  waitMs: 0,
  context: 2048,
  readySinceWallMs: undefined,
  unloadInMs: undefined,
  failure: undefined,
  processId: undefined,
};

interface Now {
  hardware: HardwareFacts | undefined;
  draining: boolean;
  signing: Promise<void> | undefined;
  busy: number;
  loadSeq: number;
}

function trial() {
  const clock = manualClock();
  const now: Now = {hardware: undefined, draining: false, signing: undefined, busy: 0, loadSeq: 0};
  const published: SignedRecord[] = [];
  const watch: Disposable = {[Symbol.dispose]: () => undefined};
  const engines: Pick<EngineHost, 'engines' | 'hardware' | 'loadSeq' | 'memory' | 'onChange'> = {
    engines: () => [{...engine, busy: now.busy}],
    hardware: () => now.hardware,
    loadSeq: () => now.loadSeq,
    memory: () => ({kind: 'device', totalBytes: 24e9, freeBytes: 24e9}),
    onChange: () => watch,
  };
  const models: Pick<ModelStore, 'list' | 'onChange'> = {list: () => [stored], onChange: () => watch};
  const announcer = startAnnouncer(
    {nodeName: 'A', version: '0', boot: 1, contextMax: undefined, role: 'both'},
    {
      clock,
      log: () => undefined,
      engines,
      models,
      experience: {told: () => undefined, onNews: () => undefined},
      mesh: {
        self: node('A'),
        publish: async record => void published.push(record),
        async sign(payload) {
          await now.signing;
          return {node: node('A'), payload, signature: new Uint8Array(64)};
        },
      },
    },
    {nodeCount: () => 1, ownFlags: () => ({draining: now.draining, paused: false})},
  );
  return {announcer, clock, now, published};
}

test('a node tells what machines of its kind can do, as soon as its devices are known', async t => {
  const {announcer, clock, now} = trial();
  await announcer.fresh();
  t.is(decodeInventory(announcer.inventory()).hardware, undefined);
  const before = announcer.self().beat.inventory;
  now.hardware = fast;
  await clock.advance(1500);
  t.not(announcer.self().beat.inventory, before, 'the others fetch it anew');
  t.deepEqual(decodeInventory(announcer.inventory()).hardware, fast);
  t.deepEqual(announcer.self().hardware, fast);
  const after = announcer.self().beat.inventory;
  now.hardware = {...fast};
  await clock.advance(1500);
  t.is(announcer.self().beat.inventory, after);
});

test('S73: a record lives for seconds, and carries the load of now and the inventory that belongs to it', async t => {
  const {announcer} = trial();
  const record = decodeRecord(await announcer.fresh());
  if (record.kind !== 'beat') return t.fail();
  t.true(record.ttlMs > 0 && record.ttlMs <= 10_000, `${record.ttlMs} ms`);
  t.deepEqual(
    record.engines.map(({slots, busy}) => [slots, busy]),
    [[2, 0]],
  );
  t.is(record.inventory, createHash('sha256').update(announcer.inventory()).digest('hex').slice(0, 16));
});

test('what changes while a record is being signed is in the next one', async t => {
  const {announcer, now} = trial();
  const signing = Promise.withResolvers<void>();
  now.signing = signing.promise;
  const old = announcer.fresh();
  now.draining = true;
  announcer.touch();
  signing.resolve();
  await old;
  const record = decodeRecord(await announcer.fresh());
  t.true(record.kind === 'beat' && record.flags.draining);
});

test('a beat that somebody was given is never the one that is announced', async t => {
  const {announcer, clock, published} = trial();
  const given = await announcer.fresh();
  await clock.advance(0);
  t.is(published.length, 1);
  t.not(published[0], given, 'who has it may have spread it, and gossip sends nothing twice');
});

test('for a moment one record serves many answers, until an engine is full or free, or the owner has spoken', async t => {
  const {announcer, clock, now} = trial();
  const load = (busy: number): void => {
    now.busy = busy;
    now.loadSeq += 1;
    announcer.touch();
  };
  const first = await announcer.recent();
  load(1);
  t.is(await announcer.recent(), first, 'a slot is free as before');
  load(2);
  const full = await announcer.recent();
  t.not(full, first);
  t.like(decodeRecord(full), {loadSeq: 2, engines: [{busy: 2}]});
  load(1);
  const free = await announcer.recent();
  t.like(decodeRecord(free), {loadSeq: 3, engines: [{busy: 1}]});
  now.draining = true;
  announcer.touch();
  const draining = await announcer.recent();
  t.not(draining, free);
  load(0);
  t.is(await announcer.recent(), draining);
  await clock.advance(60);
  t.like(decodeRecord(await announcer.recent()), {loadSeq: 4}, 'after that it is signed anew');
});

test('a record that counts a request is not told at its end, unless that has only just begun', async t => {
  const {announcer, clock, now} = trial();
  const load = (by: number): void => {
    now.busy += by;
    now.loadSeq += 1;
    announcer.touch();
  };
  load(1);
  const first = announcer.begun();
  load(1);
  const second = announcer.begun();
  await clock.advance(60);
  load(-1);
  const told = await announcer.recent(first);
  t.like(decodeRecord(told), {engines: [{busy: 1}]});
  await clock.advance(5);
  load(-1);
  const free = await announcer.recent(second);
  t.like(decodeRecord(free), {engines: [{busy: 0}]}, 'else who asks would see a slot taken that is free');
  load(1);
  const short = announcer.begun();
  load(-1);
  t.is(await announcer.recent(short), free);
});

test('changes in quick succession are announced together, within their time, as it stands then', async t => {
  const {announcer, clock, now, published} = trial();
  await clock.advance(0);
  t.is(published.length, 1, 'at the start');
  for (const busy of [1, 0, 1]) {
    now.busy = busy;
    now.loadSeq += 1;
    announcer.touch();
    await clock.advance(60);
  }
  t.is(published.length, 1);
  await clock.advance(20);
  t.is(published.length, 2);
  const [, record] = published;
  t.like(record && decodeRecord(record), {loadSeq: 3, engines: [{busy: 1}]});
  announcer.touch();
  await clock.advance(199);
  t.is(published.length, 2);
  await clock.advance(1);
  t.is(published.length, 3);
});
