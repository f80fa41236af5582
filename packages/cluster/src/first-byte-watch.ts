import {Fault} from '@hearsay/core';
import type {Clock} from '@hearsay/core';

export interface FirstByteWatch extends Disposable {
  /** Aborts when the first byte is not here in time and somebody else could be asked. */
  readonly stalled: AbortSignal;
}

export interface WatchOptions {
  readonly clock: Clock;
  readonly budgetMs: number;
  readonly nodeName: string;
  /** Whether another node would take the request: nobody is left for nothing. */
  readonly hasOther: () => boolean;
}

/** Watches one attempt until it is disposed, which must happen with the first byte. */
export function watchFirstByte({clock, budgetMs, nodeName, hasOther}: WatchOptions): FirstByteWatch {
  const controller = new AbortController();
  let timer: Disposable | undefined;
  function wait(): void {
    timer = clock.after(budgetMs, () => {
      if (!hasOther()) return wait();
      const seconds = Math.round(budgetMs / 1000);
      controller.abort(new Fault('PEER_FAILED', `${nodeName} had sent nothing after ${seconds} s`));
    });
  }
  wait();
  return {stalled: controller.signal, [Symbol.dispose]: () => timer?.[Symbol.dispose]()};
}

/** As the promise, but rejects as soon as the signal aborts; the promise itself is then nobody's matter any more. */
export async function unlessStalled<T>(work: Promise<T>, stalled: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(stalled.reason);
  stalled.addEventListener('abort', abort, {once: true});
  if (stalled.aborted) abort();
  work.catch(() => undefined);
  aborted.promise.catch(() => undefined);
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    stalled.removeEventListener('abort', abort);
  }
}
