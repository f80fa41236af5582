import type {Busy, BusyReason, EngineStateName} from '@hearsay/core';

/** Bounds of the advice when to ask again: not in a busy loop, and not so late that a free slot stays unused. */
const retryMsMin = 100;
const retryMsMax = 30_000;

interface Waits {
  /** Of the load that runs now. */
  readonly remainingMs: number;
  /** Of a whole load. */
  readonly loadMs: number;
  /** For a slot of an engine that is ready. */
  readonly slotsMs: number;
}

/** Pure: how long a request that came now would wait until it runs, as far as one can tell. */
export function expectedWaitMs(state: EngineStateName, {remainingMs, loadMs, slotsMs}: Waits): number {
  switch (state) {
    case 'ready':
      return slotsMs;
    case 'broken':
      return 0;
    case 'starting':
      return remainingMs + slotsMs;
    case 'stopped':
    case 'draining':
    case 'stopping':
    case 'backing off':
      return Math.round(loadMs) + slotsMs;
  }
}

export function busyAnswer(reason: BusyReason, waitMs: number): Busy {
  return {
    kind: 'busy',
    reason,
    record: undefined,
    retryAfterMs: Math.min(retryMsMax, Math.max(retryMsMin, waitMs)),
  };
}

/** Below this share llama-server has only begun, and what it tells says little about the rest. */
const tellingShare = 0.1;

/** Pure: what is left of a load, by what llama-server tells, else by how long it took before. */
export function remainingLoadMs(elapsedMs: number, expectedMs: number, share: number = 0): number {
  const leftMs = share > tellingShare ? (elapsedMs / share) * (1 - share) : expectedMs - elapsedMs;
  return Math.round(Math.max(0, leftMs));
}
