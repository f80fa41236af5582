import type {Log} from '@hearsay/core';
import {absentStamp, isSameStamp, lookAt} from './file-stamp.ts';
import type {FileStamp} from './file-stamp.ts';
import {groupShards} from './group-shards.ts';
import type {FileGroup} from './group-shards.ts';
import {scanFolder} from './scan-folder.ts';

/** Everything that lies in the places we look at. */
export interface Collection {
  readonly groups: readonly FoundGroup[];
  /** Folders to watch. */
  readonly folders: readonly FileStamp[];
  /** Folders and files whose stamps tell whether anything has changed since. */
  readonly stamps: readonly FileStamp[];
}

export interface FoundGroup extends FileGroup {
  readonly demo: boolean;
}

/** Stamps compared at once: more would only fill the four threads of the file system pool. */
const stampsAtOnce = 32;

/** What the toy is called, whatever its file is named. */
const demoName = 'hearsay-demo';

/**
 * Looks into all folders again and again. What is wrong with a folder or the toy is said once, when it begins, and
 * not at every look.
 */
export function fileCollector(
  folders: readonly string[],
  demoModel: string | undefined,
  log: Log,
): (signal: AbortSignal) => Promise<Collection> {
  const told = new Map<string, string>();

  function tell(place: string, message: string | undefined): void {
    if (message === undefined) told.delete(place);
    else if (told.get(place) !== message) log('warn', message, {place});
    if (message !== undefined) told.set(place, message);
  }

  async function findDemo(): Promise<readonly FoundGroup[]> {
    if (demoModel === undefined) return [];
    const found = await lookAt(demoModel);
    const file = found?.kind === 'file' ? found : undefined;
    tell(demoModel, file ? undefined : 'the demo model that ships with hearsay is missing; it is not offered');
    return file ? [{name: demoName, files: [file], count: 1, missing: [], demo: true}] : [];
  }

  return async signal => {
    const files = new Map<string, FileStamp>();
    const opened: FileStamp[] = [];
    const absent: FileStamp[] = [];
    for (const folder of folders) {
      const scan = await scanFolder(folder, signal);
      for (const file of scan.files) files.set(file.path, file);
      opened.push(...scan.folders);
      if (scan.folders.length === 0) absent.push(absentStamp(folder));
      tell(folder, describeScan(folder, scan.problem, scan.cut));
    }
    const demo = await findDemo();
    for (const group of demo) files.delete(group.files[0].path);
    const groups = groupShards([...files.values()]).map(group => ({...group, demo: false}));
    const demoFiles = demo.flatMap(group => group.files);
    const stamps = [...opened, ...absent, ...files.values(), ...demoFiles];
    return {groups: [...groups, ...demo], folders: opened, stamps};
  };
}

function describeScan(folder: string, problem: string | undefined, cut: string | undefined): string | undefined {
  if (problem !== undefined) return `the models in ${folder} are gone: ${problem}`;
  if (cut !== undefined) return `not everything in ${folder} is offered: ${cut}; name the folders with models instead`;
  return undefined;
}

/** True when anything stamped is no longer as it was. Cheap: nothing is opened or listed. */
export async function hasMoved(stamps: readonly FileStamp[], signal: AbortSignal): Promise<boolean> {
  for (let start = 0; start < stamps.length && !signal.aborted; start += stampsAtOnce) {
    const batch = stamps.slice(start, start + stampsAtOnce);
    const moved = await Promise.all(batch.map(hasStampMoved));
    if (moved.includes(true)) return true;
  }
  return false;
}

async function hasStampMoved(stamp: FileStamp): Promise<boolean> {
  return !isSameStamp(stamp, (await lookAt(stamp.path)) ?? absentStamp(stamp.path));
}
