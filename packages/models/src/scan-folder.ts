import type {Dirent} from 'node:fs';
import {opendir} from 'node:fs/promises';
import {basename, join} from 'node:path';
import {describeError} from '@hearsay/core';
import type {FileDoor} from './file-door.ts';
import {lookAt} from './file-stamp.ts';
import type {FileStamp, Look} from './file-stamp.ts';
import {isModelFileName} from './model-names.ts';

/** Which parts of a folder are worth a look. */
export interface ScanRules {
  /** Whether to enter a folder, by the names of it and of the folders above, down from the one that is scanned. */
  readonly enters?: (folders: readonly string[]) => boolean;
  /** Whether a file counts, by its name; `.gguf` files unless given. */
  readonly takes?: (fileName: string) => boolean;
  readonly limits?: ScanLimits;
}

/** What lies in a folder at any depth. */
export interface FolderScan {
  readonly files: readonly FileStamp[];
  /** Every folder that was opened, with its stamp from before: when one changes, there is something new to find. */
  readonly folders: readonly Look[];
  /** Why the folder itself could not be read; its models are gone then. */
  readonly problem: string | undefined;
  /** The limit that ended the scan early, in words. */
  readonly cut: string | undefined;
}

interface ScanLimits {
  readonly depthMax: number;
  readonly entriesMax: number;
  readonly filesMax: number;
}

/**
 * Deep enough for any layout we know (Hugging Face: 4), shallow enough for a home folder given by mistake to end
 * soon.
 */
const scanLimits: ScanLimits = {
  depthMax: 8,
  entriesMax: 100_000, // a second or two on a local disk
  filesMax: 10_000, // far above any collection; keeps the list and its memory bounded
};

/** Entries read, and files asked for, at once; how many of them reach the disk together is for the door to say. */
const batchSize = 32;

/**
 * Finds model files. Links are followed; a folder is entered once however many links lead to it, so that loops are
 * harmless. Hidden folders are skipped, unreadable ones below the given one too. Never throws for what it finds on
 * disk, but for a disk that stops to answer.
 */
export async function scanFolder(
  root: string,
  door: FileDoor,
  signal: AbortSignal,
  {enters = () => true, takes = isModelFileName, limits = scanLimits}: ScanRules = {},
): Promise<FolderScan> {
  const start = await lookAt(root, door);
  if (start?.kind !== 'folder') return emptyScan(start ? 'it is not a folder' : 'it does not exist or is out of reach');
  const files: FileStamp[] = [];
  const folders: Look[] = [];
  const entered = new Set([identityOf(start)]);
  const waiting: {look: Look; below: readonly string[]}[] = [{look: start, below: []}];
  let entriesLeft = limits.entriesMax;
  let cut: string | undefined;

  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    signal.throwIfAborted();
    const {look, below} = next;
    const listed = await door.pass(() => listFolder(look.path, entriesLeft, takes));
    if (listed.problem !== undefined && look === start) return emptyScan(listed.problem);
    if (listed.problem !== undefined && !isOfTheSystem(look))
      cut = `its folder ${look.path} cannot be read (${listed.problem})`;
    folders.push(look);
    entriesLeft -= listed.seen;
    if (listed.cut) cut = `it holds more than ${limits.entriesMax} entries; ${nameThem}`;
    const paths = listed.names.map(name => join(look.path, name));
    for await (const found of lookAtAll(paths, door)) {
      const name = basename(found.path);
      if (found.kind === 'file' && takes(name)) {
        if (files.length < limits.filesMax) files.push(found);
        else cut = `it holds more than ${limits.filesMax} models; ${nameThem}`;
      } else if (found.kind === 'folder' && !entered.has(identityOf(found)) && enters([...below, name])) {
        entered.add(identityOf(found));
        if (below.length < limits.depthMax) waiting.push({look: found, below: [...below, name]});
        else cut = `it is more than ${limits.depthMax} folders deep; ${nameThem}`;
      }
    }
    if (listed.cut) break;
  }
  return {files, folders, problem: undefined, cut};
}

const nameThem = 'name the folders with models instead';

/** On the top of a drive; nobody but the system reads it. */
function isOfTheSystem({path}: Look): boolean {
  return ['lost+found', 'System Volume Information', '$RECYCLE.BIN'].includes(basename(path));
}

function emptyScan(problem: string): FolderScan {
  return {files: [], folders: [], problem, cut: undefined};
}

interface Listing {
  readonly names: readonly string[];
  readonly seen: number;
  readonly cut: boolean;
  readonly problem: string | undefined;
}

/** Names worth a look, in a fixed order: links last, so that a link does not take the place of its neighbour. */
async function listFolder(path: string, entriesMax: number, takes: (name: string) => boolean): Promise<Listing> {
  const entries: Dirent[] = [];
  let seen = 0;
  try {
    for await (const entry of await opendir(path, {bufferSize: batchSize})) {
      if (seen === entriesMax) return {names: namesOf(entries), seen, cut: true, problem: undefined};
      seen += 1;
      if (isWorthALook(entry, takes)) entries.push(entry);
    }
    return {names: namesOf(entries), seen, cut: false, problem: undefined};
  } catch (error) {
    return {names: namesOf(entries), seen, cut: false, problem: describeError(error)};
  }
}

function isWorthALook(entry: Dirent, takes: (name: string) => boolean): boolean {
  if (entry.name.startsWith('.')) return false;
  // A link without our extension may still lead to a folder.
  return entry.isDirectory() || entry.isSymbolicLink() || (entry.isFile() && takes(entry.name));
}

function namesOf(entries: readonly Dirent[]): readonly string[] {
  const order = (entry: Dirent): string => `${entry.isSymbolicLink() ? 1 : 0}${entry.name}`;
  return entries.toSorted((a, b) => (order(a) < order(b) ? -1 : 1)).map(({name}) => name);
}

async function* lookAtAll(paths: readonly string[], door: FileDoor): AsyncGenerator<Look> {
  for (let start = 0; start < paths.length; start += batchSize) {
    const looks = await Promise.all(paths.slice(start, start + batchSize).map(path => lookAt(path, door)));
    for (const look of looks) if (look) yield look;
  }
}

function identityOf({device, inode}: Look): string {
  return `${device}:${inode}`;
}
