import test from 'ava';
import type {MemoryFacts} from '@hearsay/core';
import {manualClock} from '../../../test/support/manual-clock.ts';
import type {Device} from './list-devices.ts';
import {MemoryProbe} from './memory-probe.ts';

const gibibyte = 1024 ** 3;

const device = (total: number, free: number): Device => ({
  description: '',
  name: 'CUDA0',
  totalBytes: total * gibibyte,
  freeBytes: free * gibibyte,
});

function machine(ram: number, ...first: readonly Device[]) {
  const clock = manualClock();
  let wallOffsetMs = 0;
  const now = {ramFree: ram, devices: first, looks: 0};
  const sources = {
    ram: (): MemoryFacts => ({kind: 'ram', totalBytes: ram * gibibyte, freeBytes: now.ramFree * gibibyte}),
    devices: async () => {
      now.looks += 1;
      return now.devices;
    },
  };
  const probe = new MemoryProbe(sources, {clock: {...clock, wallMs: () => clock.wallMs() + wallOffsetMs}});
  const facts = (): string => {
    const {kind, totalBytes, freeBytes} = probe.facts();
    return `${kind} ${totalBytes / gibibyte}/${freeBytes / gibibyte}`;
  };
  return {clock, now, probe, facts, jump: (ms: number) => (wallOffsetMs += ms)};
}

test('S30: devices count where there are any, all together, else system memory', async t => {
  const both = machine(64, device(24, 20), device(12, 10));
  await both.probe.look();
  t.is(both.facts(), 'device 36/30');
  const none = machine(64);
  await none.probe.look();
  t.is(none.facts(), 'ram 64/64');
});

test('R100: a device that is only what a laptop sets aside for its screen does not count', async t => {
  for (const total of [0.5, 2]) {
    const laptop = machine(32, device(total, total));
    await laptop.probe.look();
    t.is(laptop.facts(), 'ram 32/32');
  }
  const board = machine(2, device(2, 1));
  await board.probe.look();
  t.is(board.facts(), 'device 2/1', 'it is all that this machine has');
});

test('the devices that count for memory are those that a guess of speed goes by', async t => {
  const laptop = machine(32, device(2, 2));
  await laptop.probe.look();
  t.deepEqual(laptop.probe.places(), []);
  const desktop = machine(64, device(24, 20));
  await desktop.probe.look();
  t.is(desktop.probe.places().length, 1);
});

test('R84: what other programs take is seen: system memory at once, devices at the next look', async t => {
  const {now, probe, facts} = machine(64);
  await probe.look();
  now.ramFree = 3;
  t.is(facts(), 'ram 64/3');
  const server = machine(64, device(24, 20));
  await server.probe.look();
  server.now.devices = [device(24, 1)];
  await server.probe.look();
  t.is(server.facts(), 'device 24/1');
});

test('devices are looked at again when the last look is old, and only once at a time', async t => {
  const {clock, now, facts, probe} = machine(64, device(24, 20));
  await probe.look();
  now.devices = [device(24, 7)];
  await clock.advance(59_000);
  t.is(facts(), 'device 24/20');
  await clock.advance(2_000);
  facts();
  facts();
  await clock.advance(0);
  t.is(facts(), 'device 24/7');
  t.is(now.looks, 2);
});

test('after a sleep of the machine nothing is current until somebody has looked', async t => {
  const {clock, jump, now, probe} = machine(64, device(24, 20));
  t.false(probe.isCurrent(), 'before the first look');
  await probe.look();
  t.true(probe.isCurrent());
  await clock.advance(3_600_000);
  t.true(probe.isCurrent(), 'time that both clocks show is no sleep');
  jump(1_000);
  t.true(probe.isCurrent(), 'a clock is set right now and then');
  jump(20_000);
  t.false(probe.isCurrent());
  t.false(probe.isCurrent(), 'asking does not make it so');
  const looks = now.looks;
  await Promise.all([probe.look(), probe.look()]);
  t.true(probe.isCurrent());
  t.is(now.looks, looks + 1);
  jump(-20_000);
  t.false(probe.isCurrent(), 'backwards as well');
});
