/** How long the event loop of this process was held, a millisecond or one longer turn at a time. */
export interface LoopTurns {
  /** What so large a share of all turns does not exceed. */
  readonly percentileMs: (share: number) => number;
  readonly longestMs: number;
}

/**
 * Measures until `stop` is called. Counts the processor time of this thread, not the time of the clock: what other
 * processes take on a busy machine is not ours.
 */
export function measureTurns(): {readonly stop: () => LoopTurns} {
  const turnsMs: number[] = [];
  let before = process.threadCpuUsage();
  let next = setTimeout(tick, 1);

  function tick(): void {
    const {user, system} = process.threadCpuUsage(before);
    turnsMs.push((user + system) / 1000);
    before = process.threadCpuUsage();
    next = setTimeout(tick, 1);
  }

  return {
    stop() {
      clearTimeout(next);
      turnsMs.sort((a, b) => a - b);
      return {
        percentileMs: share => turnsMs[Math.ceil(share * (turnsMs.length - 1))] ?? 0,
        longestMs: turnsMs.at(-1) ?? 0,
      };
    },
  };
}
