import type {Clock} from '@hearsay/core';
import type {Slot} from './slots.ts';
import {within} from './within.ts';

/** How the end of a cancelled request is proven. */
export interface ProofPolicy {
  /** How long llama-server may take to notice that its client is gone. */
  readonly graceMs: number;
}

export interface ProofDeps {
  readonly clock: Clock;
  /** Slots that llama-server works on; undefined: it does not tell, or not in time. */
  readonly working: () => Promise<number | undefined>;
  /** Requests of ours that llama-server works on as far as we know. */
  readonly ours: () => number;
  /** A slot was still not free after the grace period; called again at every later look. */
  readonly overdue: () => void;
}

interface Cut {
  readonly sinceMs: number;
  readonly free: () => void;
}

/** Pauses before the first looks: llama-server notices a closed socket with its next token, mostly within 20 ms. */
const firstLooksMs: readonly number[] = [15, 30, 60, 120, 250];

/**
 * Pause before every later one. A request in its prompt phase is noticed only after a second in which llama-server is
 * asked for nothing, so asking more often would keep it from noticing (facts: llama-server §2).
 */
const laterLooksMs = 1_500;

/** Whoever gives a slot back waits for the first looks, and no longer than this. */
const waitMsMax = 750;

/** Slots whose request was cancelled, until llama-server is seen not to work on them any more. */
export class CancelProof implements Disposable {
  readonly #deps: ProofDeps;
  readonly #policy: ProofPolicy;
  readonly #cuts = new Map<Slot, Cut>();
  #timer: Disposable | undefined;
  #isLooking = false;
  #looks = 0;
  #isEnded = false;

  constructor(policy: ProofPolicy, deps: ProofDeps) {
    this.#policy = policy;
    this.#deps = deps;
  }

  /**
   * Takes over a slot and calls `free` once, when it is proven to be free or the engine is gone. Resolves then, or when
   * that takes longer.
   */
  async cut(slot: Slot, free: () => void): Promise<void> {
    const {clock} = this.#deps;
    if (this.#isEnded) return free();
    const proven = Promise.withResolvers<void>();
    const done = (): void => {
      free();
      proven.resolve();
    };
    this.#cuts.set(slot, {sinceMs: clock.monotonicMs(), free: done});
    this.#looks = 0;
    if (!this.#isLooking) this.#lookSoon();
    await within(clock, waitMsMax, proven.promise);
  }

  /** The engine is gone, and with it everything that ran on it. */
  [Symbol.dispose](): void {
    this.#isEnded = true;
    this.#timer?.[Symbol.dispose]();
    this.#free(this.#cuts.size);
  }

  #lookSoon(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = this.#deps.clock.after(firstLooksMs[this.#looks] ?? laterLooksMs, () => void this.#look());
    this.#looks += 1;
  }

  async #look(): Promise<void> {
    const {clock, working, ours, overdue} = this.#deps;
    this.#isLooking = true;
    const busy = await working();
    this.#isLooking = false;
    if (this.#isEnded) return;
    if (busy !== undefined) this.#free(this.#cuts.size - Math.max(0, busy - ours()));
    if (this.#cuts.size === 0) return;
    const oldestMs = Math.min(...[...this.#cuts.values()].map(({sinceMs}) => sinceMs));
    if (clock.monotonicMs() - oldestMs > this.#policy.graceMs) overdue();
    this.#lookSoon();
  }

  /** Which of them llama-server still works on cannot be told; the oldest are the likeliest to be free. */
  #free(count: number): void {
    for (const [slot, {free}] of [...this.#cuts].slice(0, Math.max(0, count))) {
      this.#cuts.delete(slot);
      free();
    }
  }
}
