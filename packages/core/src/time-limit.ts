import type {Clock} from './environment.ts';
import {Fault} from './fault.ts';

export interface TimeLimit extends Disposable {
  /** Aborts when the time is over or the outer signal aborts. */
  readonly signal: AbortSignal;
}

/**
 * Bounds a wait. Dispose it as soon as the wait is over: then neither a timer nor a listener is left behind. It does
 * not use `AbortSignal.any`: when somebody listens to such a signal it stays in memory as long as the outer one, which
 * may live as long as the daemon.
 */
export function timeLimit(clock: Clock, ms: number, what: string, outer?: AbortSignal): TimeLimit {
  const over = new AbortController();
  const timer = clock.after(ms, () => over.abort(new Fault('TIMED_OUT', `${what} took longer than ${ms} ms`)));
  const pass = (): void => over.abort(outer?.reason);
  outer?.addEventListener('abort', pass, {once: true});
  if (outer?.aborted === true) pass();
  return {
    signal: over.signal,
    [Symbol.dispose]() {
      timer[Symbol.dispose]();
      outer?.removeEventListener('abort', pass);
    },
  };
}
