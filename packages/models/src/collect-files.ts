import {describeError} from '@hearsay/core';
import type {Clock, Log} from '@hearsay/core';
import {fileDoor} from './file-door.ts';
import type {FileDoor} from './file-door.ts';
import {absentStamp, isAbsent, isSameStamp, lookAt} from './file-stamp.ts';
import type {FileStamp, Look} from './file-stamp.ts';
import {placeScanner} from './scan-place.ts';
import type {FoundGroup, PlaceScan, StorePlace} from './scan-place.ts';

/** Everything that lies in the places we look at. */
export interface Collection {
  readonly groups: readonly CollectedGroup[];
  /** What lies where; the stamps tell whether anything has changed since. */
  readonly places: readonly PlaceFiles[];
}

export interface CollectedGroup extends FoundGroup {
  readonly door: FileDoor;
}

/** Everything in one place whose change matters. */
export interface PlaceFiles {
  readonly door: FileDoor;
  readonly folders: readonly Look[];
  readonly files: readonly FileStamp[];
}

export interface PlaceStamps {
  readonly door: FileDoor;
  readonly stamps: readonly FileStamp[];
}

export interface CollectorConfig {
  /** Earlier ones give a file that lies in several its canonical name. */
  readonly places: readonly {readonly place: StorePlace; readonly door: FileDoor}[];
  readonly demoModel: string | undefined;
}

/** Stamps asked for at once; how many of them reach the disk together is for the door to say. */
const stampsAtOnce = 32;

/** What the toy is called, whatever its file is named. */
const demoName = 'hearsay-demo';

/**
 * Looks into all places again and again, each through a door of its own. What is wrong with a place or the toy is said
 * once, when it begins, and not at every look. Stores that programs may have, or not, are missed in silence.
 */
export function fileCollector(
  {places, demoModel}: CollectorConfig,
  {clock, log}: {readonly clock: Clock; readonly log: Log},
  closing: AbortSignal,
): (signal: AbortSignal) => Promise<Collection> {
  const told = new Map<string, string>();
  const hadModels = new Set<string>();
  const sources = places.map(({place, door}) => ({place, door, scan: placeScanner(place)}));
  const demoDoor = fileDoor(clock, closing);

  function tell(place: string, message: string | undefined): void {
    if (message === undefined) told.delete(place);
    else if (told.get(place) !== message) log('warn', message, {place});
    if (message !== undefined) told.set(place, message);
  }

  async function collectPlace(
    {place, door, scan}: (typeof sources)[number],
    signal: AbortSignal,
  ): Promise<{readonly found: PlaceScan; readonly door: FileDoor}> {
    let found: PlaceScan;
    try {
      found = await scan(door, signal);
    } catch (error) {
      signal.throwIfAborted();
      found = {groups: [], files: [], folders: [], problem: describeError(error), cut: undefined};
    }
    if (found.groups.length > 0) hadModels.add(place.path);
    const isMissed = place.kind === 'folder' || hadModels.has(place.path) || found.problem?.includes('answer') === true;
    tell(place.path, isMissed ? describeScan(place.path, found.problem, found.cut) : undefined);
    return {found: found.folders.length > 0 ? found : {...found, files: await stampNothing(place.path, door)}, door};
  }

  async function findDemo(): Promise<readonly CollectedGroup[]> {
    if (demoModel === undefined) return [];
    const found = await lookAt(demoModel, demoDoor);
    const file = found?.kind === 'file' ? found : undefined;
    tell(demoModel, file ? undefined : 'the demo model that ships with hearsay is missing; it is not offered');
    if (file === undefined) return [];
    const nothing = {projector: undefined, problem: undefined, promised: [undefined], presets: []};
    return [{...nothing, names: [demoName], files: [file], demo: true, door: demoDoor}];
  }

  return async signal => {
    const scans = await Promise.all(sources.map(source => collectPlace(source, signal)));
    await clock.sleep(0, signal); // ten thousand files have been grouped: what follows is for the next turn
    const demo = await findDemo();
    const groups = new Map<string, CollectedGroup>();
    for (const group of demo) groups.set(placeOf(group), group);
    for (const {found, door} of scans) {
      for (const group of found.groups) {
        const place = placeOf(group);
        const other = groups.get(place);
        groups.set(place, other === undefined ? {...group, door} : joined(other, group));
      }
    }
    const ofDemo = {door: demoDoor, folders: [], files: demo.flatMap(({files}) => files)};
    const ofPlaces = scans.map(({found: {folders, files}, door}) => ({door, folders, files}));
    return {groups: [...groups.values()], places: [...ofPlaces, ofDemo]};
  };
}

/** Of a place in which nothing was found: it may be there all the same, as an empty folder or one not ours to read. */
async function stampNothing(path: string, door: FileDoor): Promise<readonly FileStamp[]> {
  try {
    return [(await lookAt(path, door)) ?? absentStamp(path)];
  } catch {
    return [absentStamp(path)]; // its disk does not answer
  }
}

/** What tells one model's files from another's on this machine. With another projector it is another model. */
export function placeOf({files: [first], projector}: Pick<FoundGroup, 'files' | 'projector'>): string {
  return projector === undefined ? first.path : `${first.path}\0${projector.path}`;
}

/** The same files by two ways: what either knows. */
function joined(first: CollectedGroup, other: FoundGroup): CollectedGroup {
  if (first.demo) return first;
  const [name, ...rest] = first.names;
  const names = [...rest, ...other.names.filter(another => !first.names.includes(another))];
  const promised = first.files.map((_, index) => first.promised[index] ?? other.promised[index]);
  return {...first, names: [name, ...names], promised, presets: [...first.presets, ...other.presets]};
}

function describeScan(folder: string, problem: string | undefined, cut: string | undefined): string | undefined {
  if (problem !== undefined) return `no model in ${folder} is offered, because it cannot be read: ${problem}`;
  if (cut !== undefined) return `not everything in ${folder} is offered: ${cut}`;
  return undefined;
}

/** How what was stamped stands now. `hung`: some of it cannot be told, because its disk does not answer. */
export interface Comparison {
  readonly moved: boolean;
  readonly hung: boolean;
}

/** Cheap: nothing is opened or listed. */
export async function compareStamps(places: readonly PlaceStamps[], signal: AbortSignal): Promise<Comparison> {
  const all = await Promise.all(places.map(place => comparePlace(place, signal)));
  return {moved: all.some(({moved}) => moved), hung: all.some(({hung}) => hung)};
}

async function comparePlace({door, stamps}: PlaceStamps, signal: AbortSignal): Promise<Comparison> {
  try {
    for (let start = 0; start < stamps.length && !signal.aborted; start += stampsAtOnce) {
      const batch = stamps.slice(start, start + stampsAtOnce);
      const moved = await Promise.all(batch.map(stamp => hasMoved(stamp, door)));
      if (moved.includes(true)) return {moved: true, hung: false};
    }
    return {moved: false, hung: false};
  } catch {
    // From then on nothing is known of the place but that it is absent: that is one change.
    return {moved: stamps.some(stamp => !isAbsent(stamp)), hung: true};
  }
}

async function hasMoved(stamp: FileStamp, door: FileDoor): Promise<boolean> {
  return !isSameStamp(stamp, (await lookAt(stamp.path, door)) ?? absentStamp(stamp.path));
}
