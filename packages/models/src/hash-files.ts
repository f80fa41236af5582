import {createHash} from 'node:crypto';
import {open} from 'node:fs/promises';
import {toDigest} from '@hearsay/core';
import type {Digest} from '@hearsay/core';
import type {FileStamp} from './file-stamp.ts';

/**
 * Bytes hashed in one turn of the event loop: about a millisecond of work even without SHA instructions, so that
 * streams and heartbeats of the same process do not notice. A worker thread would hash no faster; the disk is read
 * beside it anyway.
 */
const chunkBytes = 256 * 1024;

/**
 * The sha256 of a file's bytes in hex, as `sha256sum` prints it; undefined when the file is not, or is no longer, the
 * one that was stamped, or `goOn` (told of every chunk) said no. Throws what the file system throws, and the signal's
 * reason.
 */
export async function hashFile(
  stamp: FileStamp,
  goOn: (count: number) => boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  await using file = await open(stamp.path);
  const hash = createHash('sha256');
  const chunk = Buffer.allocUnsafe(chunkBytes);
  let total = 0;
  for (;;) {
    signal.throwIfAborted();
    const {bytesRead} = await file.read(chunk, 0, chunkBytes, total);
    if (bytesRead === 0) break;
    hash.update(chunk.subarray(0, bytesRead));
    total += bytesRead;
    if (total > stamp.sizeBytes) return undefined; // it grows under our hands
    if (!goOn(bytesRead)) return undefined;
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
