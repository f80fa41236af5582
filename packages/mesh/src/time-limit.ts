import {Fault} from '@hearsay/core';
import type {Clock} from '@hearsay/core';

export interface TimeLimit extends Disposable {
  /** Aborts when the time is over or the outer signal aborts. */
  readonly signal: AbortSignal;
}

/** Bounds a wait. Dispose it as soon as the wait is over, so that no timer is left behind. */
export function timeLimit(clock: Clock, ms: number, what: string, outer?: AbortSignal): TimeLimit {
  const over = new AbortController();
  const timer = clock.after(ms, () => over.abort(new Fault('TIMED_OUT', `${what} took longer than ${ms} ms`)));
  return {
    signal: outer === undefined ? over.signal : AbortSignal.any([over.signal, outer]),
    [Symbol.dispose]: () => timer[Symbol.dispose](),
  };
}
