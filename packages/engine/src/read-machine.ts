import {readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import type {MachineState} from '@hearsay/core';

/** Most supplies and zones that are looked at: machines have a dozen. */
const entriesMax = 64;
/** Points at which a zone does something; the kernel allows as many. */
const tripsMax = 12;

/** Thousandths of a degree. Points below the first are none that a processor is slowed down at. */
const tripLeast = 45_000;
const beforeCritical = 5_000;
/** Once hot it must become so much cooler, so that it is not hot and cool in turn. */
const coolerBy = 5_000;

/** What Linux says in its files under `root`, which is `/sys`; elsewhere nothing is known. */
export function readMachine(root: string, wasHot: boolean): MachineState {
  return {
    batteryShare: readBattery(join(root, 'class', 'power_supply')),
    isHot: readIsHot(join(root, 'class', 'thermal'), wasHot),
  };
}

/** The mean charge of its batteries while one of them is being emptied and no cable gives power. */
function readBattery(folder: string): number | undefined {
  const supplies = entriesOf(folder).map(name => {
    const read = (file: string): string => readText(join(folder, name, file));
    return {
      type: read('type'),
      scope: read('scope'),
      status: read('status'),
      online: read('online'),
      share: read('capacity'),
    };
  });
  const hasPower = supplies.some(({type, scope, online}) => type !== 'Battery' && scope !== 'Device' && online === '1');
  const batteries = supplies.filter(({type, scope}) => type === 'Battery' && scope !== 'Device'); // not of a mouse
  if (hasPower || !batteries.some(({status}) => status === 'Discharging')) return undefined;
  const shares = batteries.map(({share}) => Number.parseInt(share, 10) / 100).filter(share => share >= 0 && share <= 1);
  return shares.length === 0 ? undefined : shares.reduce((sum, share) => sum + share, 0) / shares.length;
}

function readIsHot(folder: string, wasHot: boolean): boolean {
  return entriesOf(folder)
    .filter(name => name.startsWith('thermal_zone'))
    .some(name => isZoneHot(join(folder, name), wasHot));
}

/** At the point where the kernel begins to slow things down; where there is none, shortly before it must. */
function isZoneHot(zone: string, wasHot: boolean): boolean {
  const degrees = numberIn(join(zone, 'temp'));
  if (degrees === undefined) return false;
  const slowsAt = tripOf(zone, 'passive') ?? minus(tripOf(zone, 'hot') ?? tripOf(zone, 'critical'), beforeCritical);
  return slowsAt !== undefined && degrees >= slowsAt - (wasHot ? coolerBy : 0);
}

function tripOf(zone: string, type: string): number | undefined {
  const trips = Array.from({length: tripsMax}, (_, index) => index).flatMap(index =>
    readText(join(zone, `trip_point_${index}_type`)) === type
      ? (numberIn(join(zone, `trip_point_${index}_temp`)) ?? [])
      : [],
  );
  const real = trips.filter(degrees => degrees >= tripLeast);
  return real.length === 0 ? undefined : Math.min(...real);
}

function minus(value: number | undefined, less: number): number | undefined {
  return value === undefined ? undefined : value - less;
}

function numberIn(path: string): number | undefined {
  const value = Number.parseInt(readText(path), 10);
  return Number.isNaN(value) ? undefined : value;
}

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder).toSorted().slice(0, entriesMax);
  } catch {
    return []; // this machine has none, or another system
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return ''; // not told here
  }
}
