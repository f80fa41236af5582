import {setTimeout as sleep} from 'node:timers/promises';

/** Limits say what a machine needs that does nothing else; where tests and neighbours share it, all takes longer. */
const patience = 5;

/** A question to a daemon costs it a millisecond or two, so whoever has waited long asks less often, */
const pauseMsMin = 20;
const pauseMsMax = 100;
/** but never so seldom that the pause is a large part of the whole. */
const pauseShare = 0.05;

/** Asks again and again until the answer is truthy, and gives it; throws after `patience` times the limit. */
export async function until<T>(what: string, ask: () => T | Promise<T>, limitMs = 10_000): Promise<T & {}> {
  const startMs = performance.now();
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    const waitedMs = performance.now() - startMs;
    if (waitedMs > patience * limitMs) {
      throw new Error(`not within ${patience} times ${limitMs} ms: ${what}`);
    }
    await sleep(Math.min(Math.max(pauseMsMin, pauseShare * waitedMs), pauseMsMax));
  }
}

/** Milliseconds that the call takes. */
export async function timed<T>(call: () => Promise<T>): Promise<{readonly value: T; readonly ms: number}> {
  const startMs = performance.now();
  const value = await call();
  return {value, ms: performance.now() - startMs};
}
