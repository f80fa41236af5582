import {isLoopbackAddress, isPrivateAddress, normalSubnet} from '@hearsay/core';

/** Connections of one address on which nobody has been admitted yet: an office behind one router, all at once. */
export const strangersPerHostMax: number = 64;

/** Of all addresses. Members that are connected already are not counted, so nobody can push them out. */
export const strangersMax: number = 256;

/** Counts inbound connections until they are admitted or gone, so that strangers cannot hold more than a few. */
export class Strangers {
  readonly #waiting = new Map<string, string>();

  /** False when there are too many already. The key tells one connection from all others. */
  letIn(key: string, host: string): boolean {
    const owner = ownerOf(host);
    const ofOwner = [...this.#waiting.values()].filter(other => other === owner).length;
    if (this.#waiting.size >= strangersMax || ofOwner >= strangersPerHostMax) return false;
    this.#waiting.set(key, owner);
    return true;
  }

  /** Admitted, or gone. */
  done(key: string): void {
    this.#waiting.delete(key);
  }
}

/** Whoever has one public IPv6 address has as many as it likes: they differ in their second half. */
function ownerOf(host: string): string {
  const isPublic6 = host.includes(':') && !isPrivateAddress(host) && !isLoopbackAddress(host);
  return isPublic6 ? (normalSubnet(`${host}/64`) ?? host) : host;
}
