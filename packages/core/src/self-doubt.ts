/**
 * A node that hears badly must not take that for the death of others (design §6). Two signs make it doubt itself: its
 * own event loop was late, so that what others sent lay unread; and all others fell silent in the same moment.
 */
export interface SelfDoubt {
  /** How much longer than usual the others may be silent. */
  readonly graceMs: number;
  /** The doubt ends then, on the monotonic clock. */
  readonly untilMs: number;
}

export const noDoubt: SelfDoubt = {graceMs: 0, untilMs: -Infinity};

/** A look around, as often as the caller can. */
export interface Listening {
  readonly nowMs: number;
  /** How late this look is. */
  readonly lateMs: number;
  /** Others that should be heard, and how many of them are silent for too long. */
  readonly others: number;
  readonly silent: number;
}

/** Garbage collection and a busy core delay a timer by less, every now and then. */
const lateMsMin = 250;

/** Others need as long again to hear of it, to dial anew and to be read. */
const graceForLate = 2;
const graceMsMin = 2000;

/** A node that is stalled for longer is really away, and is told everything anew when it is back. */
const graceMsMax = 30_000;

/** One of two may well die; that three die in one moment is rarer than a cable, a sleep or a switch of this node. */
const othersMin = 3;
const allSilentGraceMs = 4000;

/** Long enough for the next beat of everybody on a mesh of up to a hundred nodes. */
const doubtMs = 10_000;

/** Pure: the doubt after a look around. Each stall within a doubt adds to it; silence alone does not prolong itself. */
export function doubtSelf(before: SelfDoubt, {nowMs, lateMs, others, silent}: Listening): SelfDoubt {
  const held = nowMs < before.untilMs ? before : noDoubt;
  const isLate = lateMs >= lateMsMin;
  const isAlone = others >= othersMin && silent === others;
  if (!isLate && !isAlone) return held;
  const forLate = isLate ? Math.max(graceMsMin, held.graceMs + graceForLate * lateMs) : 0;
  const forSilence = isAlone ? allSilentGraceMs : 0;
  return {graceMs: Math.min(graceMsMax, Math.max(held.graceMs, forLate, forSilence)), untilMs: nowMs + doubtMs};
}
