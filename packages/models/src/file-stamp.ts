import {stat} from 'node:fs/promises';
import {Fault} from '@hearsay/core';
import type {FileDoor} from './file-door.ts';

/** One file as it was when we looked. While all four are the same, so are the bytes. */
export interface FileStamp {
  /** As found, links not followed: the name of a shard must reach llama-server unchanged (R76). */
  readonly path: string;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly inode: number;
}

/** A file or a folder, behind links. */
export type Look = FileStamp & {readonly kind: 'file' | 'folder' | 'other'; readonly device: number};

/** Undefined when nothing is there, or it is out of reach. Throws only what the door says. */
export async function lookAt(path: string, door: FileDoor): Promise<Look | undefined> {
  try {
    const found = await door.pass(() => stat(path));
    const kind = found.isFile() ? 'file' : found.isDirectory() ? 'folder' : 'other';
    const {size, mtimeMs, ino, dev} = found;
    return {path, kind, sizeBytes: size, mtimeMs, inode: ino, device: dev};
  } catch (error) {
    if (error instanceof Fault) throw error;
    return undefined; // whoever asks for the list finds it missing there
  }
}

/** No file has such a number. */
const absentInode = -1;

/** Stands for nothing at a path, so that it can be noticed when something comes. */
export function absentStamp(path: string): FileStamp {
  return {path, sizeBytes: 0, mtimeMs: 0, inode: absentInode};
}

export function isAbsent({inode}: FileStamp): boolean {
  return inode === absentInode;
}

export function isSameStamp(a: FileStamp, b: FileStamp): boolean {
  return a.path === b.path && a.sizeBytes === b.sizeBytes && a.mtimeMs === b.mtimeMs && a.inode === b.inode;
}

export function areSameStamps(a: readonly FileStamp[], b: readonly FileStamp[]): boolean {
  return a.length === b.length && a.every((stamp, index) => isSameStamp(stamp, b[index] ?? stamp));
}
