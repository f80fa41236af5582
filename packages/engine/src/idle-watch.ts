import {nextKeepAlive} from '@hearsay/core';
import type {Clock, KeepAliveLimits} from '@hearsay/core';

/** Decides when an idle engine is unloaded: its keep-alive, and the timer that runs while nobody uses it. */
export class IdleWatch {
  readonly #limits: KeepAliveLimits;
  readonly #clock: Clock;
  readonly #unload: () => void;
  #keepAliveMs: number | undefined;
  #isKept = false;
  #idle: {readonly timer: Disposable; readonly dueMs: number} | undefined;

  constructor(limits: KeepAliveLimits, clock: Clock, unload: () => void) {
    this.#limits = limits;
    this.#clock = clock;
    this.#unload = unload;
  }

  /** The owner wants it to stay until somebody stops it. */
  get isKept(): boolean {
    return this.#isKept;
  }

  /** Somebody has loaded it by hand: its time begins anew, or never ends. */
  loaded(keep: boolean): void {
    const wasIdle = this.#idle !== undefined;
    this.#isKept ||= keep;
    this.watch(false);
    this.watch(wasIdle);
  }

  /** A request came that asks for this, or for nothing. */
  asked(keepAliveMs: number | undefined): void {
    this.#keepAliveMs = nextKeepAlive(this.#keepAliveMs, keepAliveMs, this.#limits);
  }

  /** Forgets what requests have asked: it was unloaded. */
  forget(): void {
    this.#keepAliveMs = undefined;
    this.#isKept = false;
  }

  /** To be called after everything that makes the engine idle or busy. */
  watch(isIdle: boolean): void {
    const isWatched = isIdle && !this.#isKept;
    if (isWatched === (this.#idle !== undefined)) return;
    this.#idle?.timer[Symbol.dispose]();
    this.#idle = isWatched ? this.#start(this.#keepAliveMs ?? this.#limits.usualMs) : undefined;
  }

  /** Infinity: it stays; undefined: it is busy or not ready. */
  unloadInMs(): number | undefined {
    return this.#idle && Math.max(0, this.#idle.dueMs - this.#clock.monotonicMs());
  }

  #start(ms: number): {readonly timer: Disposable; readonly dueMs: number} {
    const unload = (): void => {
      this.#keepAliveMs = undefined;
      this.#unload();
    };
    return {timer: this.#clock.after(ms, unload), dueMs: this.#clock.monotonicMs() + ms};
  }
}
