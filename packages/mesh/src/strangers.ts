/** Connections of one address on which nobody has been admitted yet: an office behind one router, all at once. */
export const strangersPerHostMax: number = 64;

/** Of all addresses. Members that are connected already are not counted, so nobody can push them out. */
export const strangersMax: number = 256;

/** Counts inbound connections until they are admitted or gone, so that strangers cannot hold more than a few. */
export class Strangers {
  readonly #waiting = new Map<string, string>();

  /** False when there are too many already. The key tells one connection from all others. */
  letIn(key: string, host: string): boolean {
    const ofHost = [...this.#waiting.values()].filter(other => other === host).length;
    if (this.#waiting.size >= strangersMax || ofHost >= strangersPerHostMax) return false;
    this.#waiting.set(key, host);
    return true;
  }

  /** Admitted, or gone. */
  done(key: string): void {
    this.#waiting.delete(key);
  }
}
