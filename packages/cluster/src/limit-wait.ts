import {Fault} from '@hearsay/core';

/** For a request that may leave the mesh, and may come back. */
export interface WaitLimits {
  /** It is given back instead of waiting longer for a slot. */
  readonly waitMsMax?: number | undefined;
  /** Attempts that it has had before; workers refuse a number that they have seen. */
  readonly attemptsBefore?: number | undefined;
}

/** Throws OVERLOADED, with the word that waiting is still possible, when the best wait there is exceeds the limit. */
export function limitWait(waitMs: number = 0, waitMsMax: number = Infinity): void {
  if (waitMs <= waitMsMax) return;
  const message = `the shortest wait for a slot is ${Math.ceil(waitMs / 1000)} s`;
  throw new Fault('OVERLOADED', message, {details: {retryAfterMs: waitMs, couldWait: true}});
}
