import type {Busy, BusyReason} from '@hearsay/core';

/** Bounds of the advice when to ask again: not in a busy loop, and not so late that what is free stays unused. */
const retryMsMin = 100;
const retryMsMax = 30_000;

export function busyFor(reason: BusyReason, waitMs: number): Busy {
  const retryAfterMs = Math.min(retryMsMax, Math.max(retryMsMin, waitMs));
  return {kind: 'busy', reason, record: undefined, retryAfterMs};
}
