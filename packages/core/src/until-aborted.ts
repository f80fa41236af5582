import {Fault} from './fault.ts';

/** As the promise, but rejects as soon as the signal aborts; a value that comes too late goes to `onLate`. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal, onLate?: (late: T) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(reasonToEnd(signal));
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, {once: true});
    work.then(
      value => {
        signal.removeEventListener('abort', abort);
        return signal.aborted ? onLate?.(value) : resolve(value);
      },
      (error: unknown) => {
        signal.removeEventListener('abort', abort);
        reject(
          error instanceof Error
            ? error
            : new Fault('INTERNAL', 'something that is no error was thrown', {cause: error}),
        );
      },
    );
  });
}

function reasonToEnd(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Fault('CANCELLED', 'the request was cancelled', {cause: reason});
}
