import type {Dirent} from 'node:fs';
import {opendir} from 'node:fs/promises';
import {basename, join} from 'node:path';
import {describeError} from '@hearsay/core';
import {lookAt} from './file-stamp.ts';
import type {FileStamp, Look} from './file-stamp.ts';
import {isModelFileName} from './model-names.ts';

/** What lies in a folder at any depth. */
export interface FolderScan {
  readonly files: readonly FileStamp[];
  /** Every folder that was opened, with its stamp from before: when one changes, there is something new to find. */
  readonly folders: readonly FileStamp[];
  /** Why the folder itself could not be read; its models are gone then. */
  readonly problem: string | undefined;
  /** The limit that ended the scan early, in words. */
  readonly cut: string | undefined;
}

export interface ScanLimits {
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

/** Entries read, and files looked at, at once: more would only fill the four threads of the file system pool. */
const batchSize = 32;

/**
 * Finds model files. Links are followed; a folder is entered once however many links lead to it, so that loops are
 * harmless. Hidden folders are skipped, unreadable ones below the given one too. Never throws for what it finds on
 * disk.
 */
export async function scanFolder(
  root: string,
  signal: AbortSignal,
  limits: ScanLimits = scanLimits,
): Promise<FolderScan> {
  const start = await lookAt(root);
  if (start?.kind !== 'folder') return emptyScan(start ? 'it is not a folder' : 'it does not exist or is out of reach');
  const files: FileStamp[] = [];
  const folders: Look[] = [];
  const entered = new Set([identityOf(start)]);
  const waiting: {look: Look; depth: number}[] = [{look: start, depth: 0}];
  let entriesLeft = limits.entriesMax;
  let cut: string | undefined;

  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    signal.throwIfAborted();
    const {look, depth} = next;
    const listed = await listFolder(look.path, entriesLeft);
    if (listed.problem !== undefined && look === start) return emptyScan(listed.problem);
    folders.push(look);
    entriesLeft -= listed.seen;
    if (listed.cut) cut = `it holds more than ${limits.entriesMax} entries`;
    for await (const found of lookAtAll(listed.names.map(name => join(look.path, name)))) {
      if (found.kind === 'file') {
        if (files.length < limits.filesMax) files.push(found);
        else cut = `it holds more than ${limits.filesMax} models`;
      } else if (found.kind === 'folder' && !entered.has(identityOf(found))) {
        entered.add(identityOf(found));
        if (depth < limits.depthMax) waiting.push({look: found, depth: depth + 1});
        else cut = `it is more than ${limits.depthMax} folders deep`;
      }
    }
    if (listed.cut) break;
  }
  return {files, folders, problem: undefined, cut};
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
async function listFolder(path: string, entriesMax: number): Promise<Listing> {
  const entries: Dirent[] = [];
  let seen = 0;
  try {
    for await (const entry of await opendir(path, {bufferSize: batchSize})) {
      if (seen === entriesMax) return {names: namesOf(entries), seen, cut: true, problem: undefined};
      seen += 1;
      if (isWorthALook(entry)) entries.push(entry);
    }
    return {names: namesOf(entries), seen, cut: false, problem: undefined};
  } catch (error) {
    return {names: namesOf(entries), seen, cut: false, problem: describeError(error)};
  }
}

function isWorthALook(entry: Dirent): boolean {
  if (entry.name.startsWith('.')) return false;
  // A link without our extension may still lead to a folder.
  return entry.isDirectory() || entry.isSymbolicLink() || (entry.isFile() && isModelFileName(entry.name));
}

function namesOf(entries: readonly Dirent[]): readonly string[] {
  const order = (entry: Dirent): string => `${entry.isSymbolicLink() ? 1 : 0}${entry.name}`;
  return entries.toSorted((a, b) => (order(a) < order(b) ? -1 : 1)).map(({name}) => name);
}

async function* lookAtAll(paths: readonly string[]): AsyncGenerator<Look> {
  for (let start = 0; start < paths.length; start += batchSize) {
    const looks = await Promise.all(paths.slice(start, start + batchSize).map(lookAt));
    for (const look of looks) {
      if (look && (look.kind !== 'file' || isModelFileName(basename(look.path)))) yield look;
    }
  }
}

function identityOf({device, inode}: Look): string {
  return `${device}:${inode}`;
}
