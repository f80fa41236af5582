import {createHash} from 'node:crypto';
import type {FoundGroup} from './collect-files.ts';
import {areSameStamps} from './file-stamp.ts';
import type {FileStamp} from './file-stamp.ts';
import {describeMissing} from './group-shards.ts';
import {listModels, problemOf} from './list-models.ts';
import type {Description, Holding, Listing} from './list-models.ts';

/** A file that changed while we watched counts as unfinished until it has been left alone for so long. */
const settleMs = 2000;

interface Kept {
  readonly holding: Holding;
  /** The files that the description was made from; others than the present ones: it has to be made again. */
  readonly describedFiles: Holding['files'] | undefined;
  /** When we last saw somebody write to the files; undefined when they are left alone. */
  readonly writtenAtMs: number | undefined;
}

/**
 * Owns what lies where. Every fact is tied to the stamps of the files it was taken from, so that nothing outlives a
 * change. It does no work of its own: others look, read headers and hash, and tell it.
 */
export class Shelf {
  readonly #kept = new Map<string, Kept>();
  readonly #knownHash: (stamp: FileStamp) => string | undefined;
  readonly #onChange: () => void;
  #listing: Listing | undefined;
  #hashing: {readonly files: Holding['files']; bytes: number} | undefined;

  constructor(knownHash: (stamp: FileStamp) => string | undefined, onChange: () => void) {
    this.#knownHash = knownHash;
    this.#onChange = onChange;
  }

  listing(): Listing {
    this.#listing ??= listModels(
      this.#kept.values().map(({holding}) => holding),
      holding => this.#progress(holding),
    );
    return this.#listing;
  }

  /** Takes over what is there now: forgets what went, and everything known about files that changed. */
  reconcile(groups: readonly FoundGroup[], nowMs: number): void {
    const places = new Set(groups.map(({files}) => files[0].path));
    for (const place of this.#kept.keys()) {
      if (places.has(place)) continue;
      this.#kept.delete(place);
      this.#changed();
    }
    for (const group of groups) {
      const place = group.files[0].path;
      const old = this.#kept.get(place);
      const next = this.#place(group, old, nowMs);
      if (next === old) continue;
      this.#kept.set(place, next);
      this.#changed();
    }
  }

  /** True while somebody writes: only time will tell when it ends. */
  isUnsettled(): boolean {
    return this.#kept.values().some(({writtenAtMs}) => writtenAtMs !== undefined);
  }

  undescribed(): readonly Holding[] {
    return [...this.#kept.values()]
      .filter(({holding, describedFiles}) => describedFiles !== holding.files)
      .map(({holding}) => holding);
  }

  /** Ignored when the files have changed since. */
  describe({files}: Holding, description: Description): void {
    this.#update(files, kept => ({...kept, holding: {...kept.holding, description}, describedFiles: files}));
  }

  /** What has to be hashed, the smallest first, so that most are proven soon. */
  unproven(): readonly Holding[] {
    return [...this.#kept.values()]
      .map(({holding}) => holding)
      .filter(holding => holding.description?.kind === 'usable' && problemOf(holding) === undefined)
      .filter(({hashes}) => hashes.includes(undefined))
      .toSorted((a, b) => bytesOf(a.files) - bytesOf(b.files));
  }

  /** True until the files change or go: work on them is not in vain. */
  holds({files}: Holding): boolean {
    return this.#kept.get(files[0].path)?.holding.files === files;
  }

  /** Takes note of bytes that were just hashed. */
  progress(holding: Holding, count: number): void {
    const {files} = holding;
    if (this.#hashing?.files !== files) this.#hashing = {files, bytes: 0};
    const before = this.#progress(holding);
    this.#hashing.bytes += count;
    // Lists are asked for at every request; they show whole percents.
    if (Math.floor(before * 100) !== Math.floor(this.#progress(holding) * 100)) this.#listing = undefined;
  }

  /** Ignored when the files have changed since. */
  prove({files}: Holding, hashes: readonly string[]): void {
    this.#hashing = undefined;
    this.#update(files, kept => ({...kept, holding: {...kept.holding, hashes}}));
  }

  #place(group: FoundGroup, old: Kept | undefined, nowMs: number): Kept {
    const {name, demo, files} = group;
    const isSame = old !== undefined && old.holding.demo === demo && areSameStamps(old.holding.files, files);
    if (isSame) return settle(old, describeMissing(group), nowMs);
    const writtenAtMs = old && isWrittenTo(old.holding.files, files) ? nowMs : undefined;
    const unfinished = writtenAtMs === undefined ? undefined : 'incomplete: the file is still being written';
    return {
      holding: {
        key: old?.holding.key ?? keyOf(files[0].path),
        name,
        demo,
        files,
        problem: describeMissing(group) ?? unfinished,
        // While a file grows, its line in the list stays; it cannot be asked for anyway.
        description: writtenAtMs === undefined ? undefined : old?.holding.description,
        hashes: files.map(file => this.#knownHash(file)),
      },
      describedFiles: undefined,
      writtenAtMs,
    };
  }

  #update(files: Holding['files'], change: (kept: Kept) => Kept): void {
    const kept = this.#kept.get(files[0].path);
    if (kept?.holding.files !== files) return;
    this.#kept.set(files[0].path, change(kept));
    this.#changed();
  }

  #progress({files, hashes}: Holding): number {
    const known = bytesOf(files.filter((_, index) => hashes[index] !== undefined));
    const running = this.#hashing?.files === files ? this.#hashing.bytes : 0;
    return (known + running) / Math.max(1, bytesOf(files));
  }

  #changed(): void {
    this.#listing = undefined;
    this.#onChange();
  }
}

/** The same files as before: perhaps they have rested long enough, perhaps a failed read is worth another try. */
function settle(old: Kept, problem: string | undefined, nowMs: number): Kept {
  const isRested = old.writtenAtMs !== undefined && nowMs - old.writtenAtMs >= settleMs;
  const isRetry = old.holding.description?.kind === 'unusable' && old.holding.description.retry;
  if (!isRested && !isRetry) return old;
  return {
    holding: isRested ? {...old.holding, problem} : old.holding,
    describedFiles: isRetry ? undefined : old.describedFiles,
    writtenAtMs: isRested ? undefined : old.writtenAtMs,
  };
}

/** The same inode with other bytes: somebody writes in place. A file that took another's place by a rename is whole. */
function isWrittenTo(before: readonly FileStamp[], after: readonly FileStamp[]): boolean {
  const known = new Map(before.map(stamp => [stamp.path, stamp]));
  return after.some(stamp => {
    const old = known.get(stamp.path);
    return old?.inode === stamp.inode && (old.sizeBytes !== stamp.sizeBytes || old.mtimeMs !== stamp.mtimeMs);
  });
}

/** Says nothing about the path, since keys are seen in logs and digests. */
function keyOf(path: string): string {
  return createHash('sha256').update(path).digest('hex').slice(0, 16);
}

function bytesOf(files: readonly FileStamp[]): number {
  return files.reduce((total, {sizeBytes}) => total + sizeBytes, 0);
}
