import type {Clock} from '@hearsay/core';

/** One timer that is set again and again, and tells how much of it is left. */
export class Deadline implements Disposable {
  readonly #clock: Clock;
  readonly #passed: () => void;
  #timer: Disposable | undefined;
  #dueMs = -Infinity;

  constructor(clock: Clock, passed: () => void) {
    this.#clock = clock;
    this.#passed = passed;
  }

  set(afterMs: number): void {
    this[Symbol.dispose]();
    this.#dueMs = this.#clock.monotonicMs() + afterMs;
    this.#timer = this.#clock.after(afterMs, this.#passed);
  }

  get leftMs(): number {
    return Math.max(0, this.#dueMs - this.#clock.monotonicMs());
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
  }
}
