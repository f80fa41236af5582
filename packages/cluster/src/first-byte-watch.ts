import {Fault} from '@hearsay/core';
import type {Clock} from '@hearsay/core';

export interface FirstByteWatch extends Disposable {
  /** Aborts with the outer one, or when the first byte is not here in time and somebody else could be asked. */
  readonly signal: AbortSignal;
  readonly hasStalled: () => boolean;
}

export interface WatchOptions {
  readonly clock: Clock;
  readonly budgetMs: number;
  readonly nodeName: string;
  /** Whether another node would take the request: nobody is left for nothing. */
  readonly hasOther: () => boolean;
}

/** Watches one attempt until it is disposed, which must be with its first byte; the outer signal counts on. */
export function watchFirstByte(
  {clock, budgetMs, nodeName, hasOther}: WatchOptions,
  outer: AbortSignal,
): FirstByteWatch {
  const controller = new AbortController();
  const pass = (): void => controller.abort(outer.reason);
  outer.addEventListener('abort', pass, {once: true});
  if (outer.aborted) pass();
  let timer: Disposable | undefined;
  let hasStalled = false;
  function wait(): void {
    timer = clock.after(budgetMs, () => {
      if (!hasOther()) return wait();
      hasStalled = !controller.signal.aborted;
      const seconds = Math.round(budgetMs / 1000);
      controller.abort(new Fault('PEER_FAILED', `${nodeName} had sent nothing after ${seconds} s`));
    });
  }
  wait();
  return {
    signal: controller.signal,
    hasStalled: () => hasStalled,
    [Symbol.dispose]: () => timer?.[Symbol.dispose](),
  };
}
