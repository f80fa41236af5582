import {createHash} from 'node:crypto';
import test from 'ava';
import type {EngineHost, HardwareFacts, ModelStore, SignedRecord} from '@hearsay/core';
import {decodeInventory, decodeRecord} from '@hearsay/core';
import {node} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {startAnnouncer} from './announcer.ts';

const fast: HardwareFacts = {memoryBytesPerSecond: 1000e9, operationsPerSecond: 80e12, diskBytesPerSecond: 1e9};

function trial() {
  const clock = manualClock();
  const now: {hardware: HardwareFacts | undefined; draining: boolean; signing: Promise<void> | undefined} = {
    hardware: undefined,
    draining: false,
    signing: undefined,
  };
  const published: SignedRecord[] = [];
  const watch: Disposable = {[Symbol.dispose]: () => undefined};
  const engines: Pick<EngineHost, 'engines' | 'hardware' | 'loadSeq' | 'memory' | 'onChange'> = {
    engines: () => [],
    hardware: () => now.hardware,
    loadSeq: () => 0,
    memory: () => ({kind: 'device', totalBytes: 24e9, freeBytes: 24e9}),
    onChange: () => watch,
  };
  const models: Pick<ModelStore, 'list' | 'onChange'> = {list: () => [], onChange: () => watch};
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
  t.deepEqual(record.engines, []);
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
