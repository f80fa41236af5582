/** Numbers in [0, 1) that are the same for the same seed. */
export type Chance = () => number;

/** mulberry32. */
export function chance(seed: number): Chance {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export function exponential(next: Chance, mean: number): number {
  return -Math.log(1 - next()) * mean;
}

export function logNormal(next: Chance, median: number, sigma: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  return median * Math.exp(sigma * normal);
}

interface Due {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** Simulated time: what is due runs in its order, at once. Seconds. */
export class Timeline {
  now = 0;
  readonly #heap: Due[] = [];
  #order = 0;

  in(seconds: number, run: () => void): void {
    const heap = this.#heap;
    this.#order += 1;
    heap.push({at: this.now + seconds, order: this.#order, run});
    let index = heap.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#swapIfEarlier(index, parent)) break;
      index = parent;
    }
  }

  runUntil(end: number): void {
    for (let due = this.#heap[0]; due && due.at <= end; due = this.#heap[0]) {
      this.#removeFirst();
      this.now = due.at;
      due.run();
    }
    this.now = end;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    heap[0] = last;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      const child = this.#isEarlier(left + 1, left) ? left + 1 : left;
      if (child >= heap.length || !this.#swapIfEarlier(child, index)) return;
      index = child;
    }
  }

  #isEarlier(a: number, b: number): boolean {
    const one = this.#heap[a];
    const other = this.#heap[b];
    if (!one || !other) return false;
    return one.at < other.at || (one.at === other.at && one.order < other.order);
  }

  #swapIfEarlier(a: number, b: number): boolean {
    if (!this.#isEarlier(a, b)) return false;
    const one = this.#heap[a];
    const other = this.#heap[b];
    if (!one || !other) return false;
    this.#heap[a] = other;
    this.#heap[b] = one;
    return true;
  }
}
