import type {Clock} from '@hearsay/core';

export interface ManualClock extends Clock {
  /** Lets time pass: runs what becomes due, in its order, and what follows from it. */
  advance(ms: number): Promise<void>;
}

interface Timer {
  readonly dueMs: number;
  readonly run: () => void;
}

/** Time that passes only when a test says so. */
export function manualClock(): ManualClock {
  let nowMs = 0;
  /** In the order in which they run. */
  const timers: Timer[] = [];
  const after = (ms: number, run: () => void): Disposable => {
    const timer = {dueMs: nowMs + ms, run};
    timers.splice(timers.findLastIndex(({dueMs}) => dueMs <= timer.dueMs) + 1, 0, timer);
    return {
      [Symbol.dispose]: () => {
        const index = timers.indexOf(timer);
        if (index >= 0) timers.splice(index, 1);
      },
    };
  };
  return {
    wallMs: () => nowMs,
    monotonicMs: () => nowMs,
    after,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted === true) return reject(asError(signal.reason));
        const timer = after(ms, () => {
          signal?.removeEventListener('abort', giveUp);
          resolve();
        });
        const giveUp = (): void => {
          timer[Symbol.dispose]();
          reject(asError(signal?.reason));
        };
        signal?.addEventListener('abort', giveUp);
      }),
    async advance(ms) {
      const endMs = nowMs + ms;
      for (;;) {
        await settle();
        const [next] = timers;
        if (next === undefined || next.dueMs > endMs) break;
        timers.shift();
        nowMs = next.dueMs;
        next.run();
      }
      nowMs = endMs;
    },
  };
}

/** Lets everything go on that waits for nothing but its turn. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise<void>(resolve => void setImmediate(resolve));
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
