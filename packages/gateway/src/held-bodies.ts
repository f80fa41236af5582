import type {IncomingMessage, ServerResponse} from 'node:http';

/** All bodies together that are held at one time: eight of the largest, or thousands of usual ones. */
export const heldBytesMax: number = 512 * 1024 * 1024;

/**
 * Counts the bytes of all requests that this gateway holds, which it does until each is answered: the limit of one
 * body says nothing about a thousand of them.
 */
export class HeldBodies {
  readonly #bytesMax: number;
  readonly #bytesOf = new Map<IncomingMessage, number>();
  #heldBytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Called once for every request, before its body is read: what it holds is free when its answer has ended. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    response.once('close', () => {
      this.#heldBytes -= this.#bytesOf.get(request) ?? 0;
      this.#bytesOf.delete(request);
    });
    this.#bytesOf.set(request, 0);
  }

  /** Takes room for so many more bytes of a request; false when there is none. */
  take(request: IncomingMessage, bytes: number): boolean {
    const before = this.#bytesOf.get(request);
    if (before === undefined) return true; // its client has gone, and nothing of it is kept
    if (this.#heldBytes + bytes > this.#bytesMax) return false;
    this.#heldBytes += bytes;
    this.#bytesOf.set(request, before + bytes);
    return true;
  }
}
