import {createHash} from 'node:crypto';
import type {LoadedFacts} from '@hearsay/core';
import type {CollectedGroup} from './collect-files.ts';
import {placeOf} from './collect-files.ts';
import {confirmCapabilities} from './confirm-capabilities.ts';
import type {KnownHash} from './digest-cache.ts';
import {areSameStamps} from './file-stamp.ts';
import type {FileStamp} from './file-stamp.ts';
import {listModels, problemOf} from './list-models.ts';
import type {Description, Holding, Listing} from './list-models.ts';

/** A file that changed while we watched counts as unfinished until it has been left alone for so long. */
const settleMs = 2000;

interface Kept {
  readonly holding: Holding;
  /** The files that the description was made from; others than the present ones: it has to be made again. */
  readonly describedFiles: Holding['files'] | undefined;
  /** The sha256 that the store names for each file. */
  readonly promised: readonly (string | undefined)[];
  /** What the store said of the files when we looked last. */
  readonly told: string | undefined;
  /** When we last saw somebody write to the files; undefined when they are left alone. */
  readonly writtenAtMs: number | undefined;
}

/**
 * Owns what lies where. Every fact is tied to the stamps of the files it was taken from, so that nothing outlives a
 * change. It does no work of its own: others look, read headers and hash, and tell it.
 */
export class Shelf {
  readonly #kept = new Map<string, Kept>();
  readonly #knownHash: (stamp: FileStamp) => KnownHash | undefined;
  readonly #onChange: () => void;
  #listing: Listing | undefined;
  #hashing: {readonly files: Holding['files']; bytes: number} | undefined;

  constructor(knownHash: (stamp: FileStamp) => KnownHash | undefined, onChange: () => void) {
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
  reconcile(groups: readonly CollectedGroup[], nowMs: number): void {
    const places = new Set(groups.map(placeOf));
    for (const place of this.#kept.keys()) {
      if (places.has(place)) continue;
      this.#kept.delete(place);
      this.#changed();
    }
    for (const group of groups) {
      const place = placeOf(group);
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
  describe(holding: Holding, description: Description): void {
    const {files} = holding;
    this.#update(holding, kept => ({...kept, holding: {...kept.holding, description}, describedFiles: files}));
  }

  /** Takes note of what an engine says that has loaded the model; forgotten with the files. */
  confirm(key: string, told: LoadedFacts): void {
    const kept = this.#kept.values().find(({holding}) => holding.key === key);
    if (kept?.holding.description?.kind !== 'usable') return;
    const {description} = kept.holding;
    const capabilities = confirmCapabilities(description.capabilities, told);
    if (areEqual([...description.capabilities].toSorted(), [...capabilities].toSorted())) return;
    this.#update(kept.holding, same => ({
      ...same,
      holding: {...same.holding, description: {...description, capabilities}},
    }));
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
  holds(holding: Holding): boolean {
    return this.#kept.get(placeOf(holding))?.holding.files === holding.files;
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

  /**
   * Call when its files have been hashed. Ignored when they have changed since. Bytes that are not what the store
   * promised make the model unusable: nobody knows what they are.
   */
  prove(holding: Holding, hashes: readonly string[]): void {
    this.#hashing = undefined;
    this.#update(holding, kept => {
      const problem = kept.holding.problem ?? describeBroken(hashes, kept.promised);
      return {...kept, holding: {...kept.holding, hashes, problem}};
    });
  }

  /** Proven, but only by the word of the store or by a look long ago: one that should be read again. */
  unchecked(sinceWallMs: number, isTried: (files: Holding['files']) => boolean): Holding | undefined {
    return this.#kept
      .values()
      .map(({holding}) => holding)
      .filter(({files}) => !isTried(files))
      .filter(holding => holding.description?.kind === 'usable' && problemOf(holding) === undefined)
      .find(({files}) => files.some(file => (this.#knownHash(file)?.checkedWallMs ?? -Infinity) < sinceWallMs));
  }

  #place(group: CollectedGroup, old: Kept | undefined, nowMs: number): Kept {
    const {names, demo, files, projector, presets, door, promised} = group;
    const isSame = old !== undefined && old.holding.demo === demo && areSameStamps(old.holding.files, files);
    if (isSame) return relabel(settle(old, group.problem, nowMs), group);
    const writtenAtMs = old && isWrittenTo(old.holding.files, files) ? nowMs : undefined;
    const unfinished = writtenAtMs === undefined ? undefined : 'incomplete: the file is still being written';
    const hashes = this.#hashesOf(files, promised);
    return {
      holding: {
        key: old?.holding.key ?? keyOf(placeOf(group)),
        names,
        demo,
        files,
        projector,
        presets,
        door,
        problem: group.problem ?? unfinished ?? describeBroken(hashes, promised),
        // While a file grows, its line in the list stays; it cannot be asked for anyway.
        description: writtenAtMs === undefined ? undefined : old?.holding.description,
        hashes,
      },
      describedFiles: undefined,
      promised,
      told: group.problem,
      writtenAtMs,
    };
  }

  /** What was read goes before what was promised. */
  #hashesOf(files: Holding['files'], promised: Kept['promised']): Holding['hashes'] {
    return files.map((file, index) => this.#knownHash(file)?.sha256 ?? promised[index]);
  }

  #update({files, projector}: Pick<Holding, 'files' | 'projector'>, change: (kept: Kept) => Kept): void {
    const place = placeOf({files, projector});
    const kept = this.#kept.get(place);
    if (kept?.holding.files !== files) return;
    this.#kept.set(place, change(kept));
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
    ...old,
    holding: isRested ? {...old.holding, problem} : old.holding,
    describedFiles: isRetry ? undefined : old.describedFiles,
    writtenAtMs: isRested ? undefined : old.writtenAtMs,
  };
}

/** New names, or a new tag of the same files: what was read of them stays. */
function relabel(kept: Kept, {names, presets, problem, promised}: CollectedGroup): Kept {
  const {holding} = kept;
  const isSame = areEqual(holding.names, names) && areEqual(kept.promised, promised) && kept.told === problem;
  if (isSame && arePresetsEqual(holding.presets, presets)) return kept;
  const shown = holding.problem === kept.told ? problem : holding.problem;
  return {...kept, promised, told: problem, holding: {...holding, names, presets, problem: shown}};
}

function areEqual(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}

function arePresetsEqual(a: Holding['presets'], b: Holding['presets']): boolean {
  return a.length === b.length && (a.length === 0 || JSON.stringify(a) === JSON.stringify(b));
}

function describeBroken(hashes: Holding['hashes'], promised: Kept['promised']): string | undefined {
  const isBroken = promised.some((hash, index) => hash !== undefined && hashes[index] !== hash);
  return isBroken ? 'damaged: its bytes are not those that its store promises by name; fetch it again' : undefined;
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
