import {randomNumbers} from '../tiny-models/random-numbers.ts';

/** Chance that can be played again, from a seed. */
export interface Dice {
  /** From 0 to 1, without 1. */
  next(): number;
  pick<T>(items: readonly T[]): T;
  /** A whole number, both ends included. */
  between(low: number, high: number): number;
}

export function dice(seed: number): Dice {
  const numbers = randomNumbers(seed);
  const uniform = (): number => numbers.uniform();
  return {
    next: uniform,
    pick(items) {
      const item = items[Math.floor(uniform() * items.length)];
      if (item === undefined) throw new Error('nothing to pick from');
      return item;
    },
    between: (low, high) => low + Math.floor(uniform() * (high - low + 1)),
  };
}
