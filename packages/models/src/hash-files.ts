import {createHash} from 'node:crypto';
import {toDigest} from '@hearsay/core';
import type {Digest} from '@hearsay/core';
import {openThrough} from './file-door.ts';
import type {FileDoor} from './file-door.ts';
import type {FileStamp} from './file-stamp.ts';

/**
 * Bytes hashed in one turn of the event loop: about a millisecond of work even without SHA instructions, so that
 * streams and heartbeats of the same process do not notice. A worker thread would hash no faster; the disk is read
 * beside it anyway.
 */
const chunkBytes = 256 * 1024;

export interface HashingWays {
  readonly door: FileDoor;
  /** Told of every chunk; may take its time, to spare the disk. False ends the work. */
  readonly goOn: (count: number) => boolean | Promise<boolean>;
}

/**
 * The sha256 of a file's bytes in hex, as `sha256sum` prints it; undefined when the file is not, or is no longer, the
 * one that was stamped, or `goOn` said no. Throws what the file system throws, and the signal's
 * reason.
 */
export async function hashFile(
  stamp: FileStamp,
  {door, goOn}: HashingWays,
  signal: AbortSignal,
): Promise<string | undefined> {
  await using file = await openThrough(door, stamp.path);
  const hash = createHash('sha256');
  const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, stamp.sizeBytes + 1)); // one more shows whether it grows
  let total = 0;
  for (;;) {
    signal.throwIfAborted();
    const {bytesRead} = await file.read(chunk, 0, chunk.length, total);
    if (bytesRead === 0) break;
    hash.update(chunk.subarray(0, bytesRead));
    total += bytesRead;
    if (total > stamp.sizeBytes) return undefined; // it grows under our hands
    if (!(await goOn(bytesRead))) return undefined;
  }
  const {size, mtimeMs, ino} = await file.stat();
  const isUnchanged = size === stamp.sizeBytes && mtimeMs === stamp.mtimeMs && ino === stamp.inode;
  return isUnchanged && total === size ? hash.digest('hex') : undefined;
}

/**
 * The digest of a model. Of one file, the sha256 of its bytes, so that it equals what `sha256sum`, Hugging Face and
 * Ollama say. Of several (shards in order, then the projector), the sha256 over their 32-byte digests one after
 * another.
 */
export function modelDigest(hashes: readonly string[]): Digest {
  const [only, ...rest] = hashes;
  if (only !== undefined && rest.length === 0) return toDigest(`sha256:${only}`);
  const combined = createHash('sha256').update(Buffer.from(hashes.join(''), 'hex'));
  return toDigest(`sha256:${combined.digest('hex')}`);
}

/** Stands for a model of this machine until its digest is known; must not leave the machine. */
export function unprovenDigest(key: string): Digest {
  return toDigest(`unproven:${key}`);
}
