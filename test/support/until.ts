import {setTimeout as sleep} from 'node:timers/promises';

/** Asks again and again until the answer is truthy, and gives it; throws with the last answer after the limit. */
export async function until<T>(what: string, ask: () => T | Promise<T>, limitMs = 10_000): Promise<T & {}> {
  const startMs = performance.now();
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (performance.now() - startMs > limitMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await sleep(20);
  }
}

/** Milliseconds that the call takes. */
export async function timed<T>(call: () => Promise<T>): Promise<{readonly value: T; readonly ms: number}> {
  const startMs = performance.now();
  const value = await call();
  return {value, ms: performance.now() - startMs};
}
