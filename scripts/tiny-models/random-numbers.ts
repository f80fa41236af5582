/**
 * Random numbers that are the same on every machine for the same seed. Only integer operations, additions and one
 * square root are used, so the bytes of a model do not depend on how an engine rounds logarithms or cosines.
 */
export interface RandomNumbers {
  /** Even in [0, 1), with 32 bits. */
  uniform(): number;
  sign(): 1 | -1;
  /** Bell-shaped around 0 (a sum of four even numbers: nothing lies beyond 3.5 deviations). */
  bell(count: number, deviation: number): Float32Array;
}

export function randomNumbers(seed: number): RandomNumbers {
  let state = seed >>> 0;
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    uniform,
    sign: () => (uniform() < 0.5 ? -1 : 1),
    bell: (count, deviation) => {
      const scale = deviation * Math.sqrt(3); // the sum of four has a variance of 4/12
      const values = new Float32Array(count);
      for (let index = 0; index < count; index++) {
        values[index] = (uniform() + uniform() + uniform() + uniform() - 2) * scale;
      }
      return values;
    },
  };
}
