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
  const timers = new Set<Timer>();
  const after = (ms: number, run: () => void): Disposable => {
    const timer = {dueMs: nowMs + ms, run};
    timers.add(timer);
    return {[Symbol.dispose]: () => void timers.delete(timer)};
  };
  return {
    wallMs: () => nowMs,
    monotonicMs: () => nowMs,
    after,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted === true) return reject(asError(signal.reason));
        const timer = after(ms, resolve);
        signal?.addEventListener('abort', () => {
          timer[Symbol.dispose]();
          reject(asError(signal.reason));
        });
      }),
    async advance(ms) {
      const endMs = nowMs + ms;
      for (;;) {
        await settle();
        const [next] = [...timers].filter(({dueMs}) => dueMs <= endMs).toSorted((a, b) => a.dueMs - b.dueMs);
        if (next === undefined) break;
        timers.delete(next);
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
