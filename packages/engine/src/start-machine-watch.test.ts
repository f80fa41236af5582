import {mkdir, mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {startMachineWatch} from './start-machine-watch.ts';

/** A folder that looks like `/sys` of a laptop: one file for each of these paths. */
async function laptop(t: ExecutionContext, files: Readonly<Record<string, string>>) {
  const root = await mkdtemp(join(tmpdir(), 'hearsay-sys-'));
  t.teardown(async () => rm(root, {recursive: true}));
  const write = async (changes: Readonly<Record<string, string>>): Promise<void> => {
    for (const [path, text] of Object.entries(changes)) {
      const file = join(root, 'class', path);
      await mkdir(dirname(file), {recursive: true});
      await writeFile(file, `${text}\n`);
    }
  };
  await write(files);
  const clock = manualClock();
  const watch = startMachineWatch({root, platform: 'linux'}, {clock});
  t.teardown(() => watch[Symbol.dispose]());
  return {watch, clock, write};
}

const discharging = {
  'power_supply/AC/type': 'Mains',
  'power_supply/AC/online': '0',
  'power_supply/BAT0/type': 'Battery',
  'power_supply/BAT0/status': 'Discharging',
  'power_supply/BAT0/capacity': '64',
};

test('a laptop on its battery says how full that is, and nothing as soon as the cable is in', async t => {
  const {watch, clock, write} = await laptop(t, discharging);
  t.is(watch.state().batteryShare, 0.64);
  let changes = 0;
  using _listener = watch.onChange(() => (changes += 1));
  await write({'power_supply/AC/online': '1', 'power_supply/BAT0/status': 'Charging'});
  await clock.advance(10_000);
  t.is(watch.state().batteryShare, undefined);
  t.is(changes, 1);
});

test('the battery of a mouse is none, a full battery on a cable is none, and a small change is no news', async t => {
  const mouse = {
    'power_supply/hidpp/type': 'Battery',
    'power_supply/hidpp/scope': 'Device',
    'power_supply/hidpp/status': 'Discharging',
    'power_supply/hidpp/capacity': '5',
  };
  t.is((await laptop(t, mouse)).watch.state().batteryShare, undefined);
  const full = {...discharging, 'power_supply/AC/online': '1', 'power_supply/BAT0/status': 'Full'};
  t.is((await laptop(t, full)).watch.state().batteryShare, undefined);

  const {watch, clock, write} = await laptop(t, discharging);
  let changes = 0;
  using _listener = watch.onChange(() => (changes += 1));
  await write({'power_supply/BAT0/capacity': '62'});
  await clock.advance(10_000);
  t.is(watch.state().batteryShare, 0.62);
  t.is(changes, 0);
});

test('a machine is hot from the point where it slows itself down, until it is five degrees cooler', async t => {
  const zone = {
    'thermal/thermal_zone0/temp': '60000',
    'thermal/thermal_zone0/trip_point_0_type': 'critical',
    'thermal/thermal_zone0/trip_point_0_temp': '110000',
    'thermal/thermal_zone0/trip_point_1_type': 'passive',
    'thermal/thermal_zone0/trip_point_1_temp': '90000',
    'thermal/thermal_zone0/trip_point_2_type': 'passive',
    'thermal/thermal_zone0/trip_point_2_temp': '-1000',
  };
  const {watch, clock, write} = await laptop(t, zone);
  const at = async (degrees: number): Promise<boolean> => {
    await write({'thermal/thermal_zone0/temp': String(degrees * 1000)});
    await clock.advance(10_000);
    return watch.state().isHot;
  };
  t.false(watch.state().isHot);
  t.deepEqual([await at(91), await at(87), await at(84), await at(87)], [true, true, false, false]);
});

test('where nothing is told nothing is known: a server without a battery, and other systems', async t => {
  t.deepEqual((await laptop(t, {})).watch.state(), {batteryShare: undefined, isHot: false});
  const {watch} = await laptop(t, discharging);
  t.not(watch.state().batteryShare, undefined);
  using mac = startMachineWatch({root: '/sys', platform: 'darwin'}, {clock: manualClock()});
  t.deepEqual(mac.state(), {batteryShare: undefined, isHot: false});
});
