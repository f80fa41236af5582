import type {Cost} from './cost.ts';

export interface PatienceLimits {
  /** Never less: a machine may be busy with something else for a while. */
  readonly firstByteMsMin: number;
  /** Never more, whatever was expected. */
  readonly firstByteMsMax: number;
}

/** An estimate may be wrong by this factor: it was within two for nine of ten requests in the simulation. */
const slackFactor = 4;
/** A guess may be wrong by more. */
const guessFactor = 10;

/** How long a node may take to its first byte before another is asked: several times what was expected of it. */
export function firstByteBudgetMs(cost: Cost | undefined, {firstByteMsMin, firstByteMsMax}: PatienceLimits): number {
  if (!cost) return firstByteMsMax;
  const {model, prefill} = cost.sources;
  const factor = model === 'measured' && prefill === 'measured' ? slackFactor : guessFactor;
  const expectedMs = 1000 * factor * cost.firstByteSeconds;
  return Math.min(firstByteMsMax, Math.max(firstByteMsMin, expectedMs));
}
