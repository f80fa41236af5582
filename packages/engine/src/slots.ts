import type {Clock} from '@hearsay/core';

/** One unit of an engine's concurrency, held or waited for. */
export interface Slot {
  /** Resolves when it is held. */
  readonly granted: Promise<void>;
}

interface Waiting {
  readonly slot: Slot;
  readonly grant: () => void;
}

/**
 * Most requests that wait for one engine: more could not be served within a client's patience, and each holds its
 * body.
 */
export const queuedMax: number = 256;

/** Most requests at the same time that need no slot: they are short, and llama-server has as many threads for them. */
const besideMax = 16;

/** Assumed length of a request before the first one has ended, in milliseconds. */
const holdingMsAtFirst = 2_000;

/** How much one request moves the estimate: some ten requests make a new one. */
const newShare = 0.2;

/** Counts an engine's slots and keeps the line for them, first come first served. */
export class Slots {
  #size: number;
  readonly #clock: Clock;
  /** With the time since when, on the monotonic clock. */
  readonly #held = new Map<Slot, number>();
  readonly #queue: Waiting[] = [];
  readonly #beside = new Set<Slot>();
  #holdingMs = holdingMsAtFirst;

  constructor(size: number, clock: Clock) {
    this.#size = size;
    this.#clock = clock;
  }

  get size(): number {
    return this.#size;
  }

  /** Slots that are held above a smaller size stay held until they are given back. */
  resize(size: number): void {
    this.#size = size;
  }

  get held(): number {
    return this.#held.size;
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** Of requests that run: those that hold a slot and those that need none. */
  get inUse(): number {
    return this.#held.size + this.#beside.size;
  }

  /** A free slot, or a place beside them all; undefined when there is none or when others wait already. */
  take(beside = false): Slot | undefined {
    if (beside && this.#beside.size < besideMax) return this.#standBeside();
    if (this.#held.size >= this.size || this.#queue.length > 0) return undefined;
    const slot = {granted: Promise.resolve()};
    this.#hold(slot);
    return slot;
  }

  /** The last place in the line; undefined when that is full. */
  enqueue(): Slot | undefined {
    if (this.#queue.length >= queuedMax) return undefined;
    const {promise, resolve} = Promise.withResolvers<void>();
    const slot = {granted: promise};
    this.#queue.push({slot, grant: resolve});
    return slot;
  }

  /** Gives free slots to those who wait longest; returns how many. */
  serve(): number {
    const before = this.#held.size;
    while (this.#held.size < this.size) {
      const next = this.#queue.shift();
      if (next === undefined) break;
      this.#hold(next.slot);
      next.grant();
    }
    return this.#held.size - before;
  }

  /** Ends a slot or a wait for one; true when it was in use. */
  release(slot: Slot): boolean {
    if (this.#beside.delete(slot)) return true;
    const sinceMs = this.#held.get(slot);
    if (sinceMs !== undefined) {
      this.#held.delete(slot);
      this.#holdingMs += newShare * (this.#clock.monotonicMs() - sinceMs - this.#holdingMs);
      return true;
    }
    const index = this.#queue.findIndex(waiting => waiting.slot === slot);
    if (index >= 0) this.#queue.splice(index, 1);
    return false;
  }

  /** How long somebody who came now would wait for a slot, as far as one can tell. */
  waitMs(): number {
    const ahead = this.#held.size + this.#queue.length - this.size;
    return ahead < 0 ? 0 : Math.round(((ahead + 1) * this.#holdingMs) / this.size);
  }

  #standBeside(): Slot {
    const slot = {granted: Promise.resolve()};
    this.#beside.add(slot);
    return slot;
  }

  #hold(slot: Slot): void {
    this.#held.set(slot, this.#clock.monotonicMs());
  }
}
