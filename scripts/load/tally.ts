/** Counts by name. */
export class Tally {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Most frequent first. */
  entries(): readonly (readonly [string, number])[] {
    return [...this.#counts].toSorted(([, a], [, b]) => b - a);
  }

  /** One line a name. */
  list(): string {
    return this.entries()
      .map(([name, count]) => `${String(count).padStart(7)}  ${name}`)
      .join('\n');
  }
}
