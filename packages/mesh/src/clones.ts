import {isPrivateAddress} from '@hearsay/core';
import type {Clock} from '@hearsay/core';

/** Two sightings this far apart are no interface that is just getting another address. */
const certainMs = 3000;
/** Without another sighting the twin is gone. */
const goneMs = 60_000;
const addressesMax = 16;

/** Notices that another machine, or another daemon of this one, uses this node's key: a copied data folder (R57). */
export class Clones {
  readonly #clock: Clock;
  readonly #isOwn: (host: string, port: number | undefined) => boolean;
  readonly #found: (host: string) => void;
  readonly #seen = new Map<string, {firstMs: number; lastMs: number; told: boolean}>();

  constructor(clock: Clock, isOwn: (host: string, port: number | undefined) => boolean, found: (host: string) => void) {
    this.#clock = clock;
    this.#isOwn = isOwn;
    this.#found = found;
  }

  /** Somebody at that address says, or has proven, that it is this node. The port: where it listens, if known. */
  sighted(told: string, port?: number): void {
    const host = told.replace(/%.*$/u, ''); // a zone is whatever text somebody has put into a packet
    // A public address may be this machine itself, seen through its own router.
    if (!isPrivateAddress(host) || this.#isOwn(host, port)) return;
    const nowMs = this.#clock.monotonicMs();
    const before = this.#seen.get(host);
    const seen =
      before === undefined || nowMs - before.lastMs > goneMs
        ? {firstMs: nowMs, lastMs: nowMs, told: false}
        : {...before, lastMs: nowMs};
    const isCertain = nowMs - seen.firstMs >= certainMs;
    if (this.#seen.has(host) || this.#seen.size < addressesMax) {
      this.#seen.set(host, {...seen, told: isCertain || seen.told});
    }
    if (isCertain && !seen.told) this.#found(host);
  }

  warnings(): readonly string[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#seen]
      .filter(([, {told, lastMs}]) => told && nowMs - lastMs <= goneMs)
      .map(([host]) => cloneText(host));
  }
}

export function cloneText(host: string): string {
  return (
    `the machine at ${host} uses the same key as this one, as after copying a data folder: neither can be told from ` +
    'the other. Stop one of the two, delete node.key in its data folder, and start it again'
  );
}
