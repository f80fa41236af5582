import type {Clock} from '@hearsay/core';

/** The promise's value, or undefined when `ms` pass first. */
export async function within<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = clock.after(ms, () => late.resolve(undefined));
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    timer[Symbol.dispose]();
  }
}
