import type {Connection, Stream} from '@libp2p/interface';
import type {Clock, Log, NodeId} from '@hearsay/core';

/** How many streams are kept open for a peer, and at how many they are filled up. */
interface Stock {
  readonly max: number;
  /** All that are missing are opened together then: what agrees on their protocol shares its packets. */
  readonly low: number;
}

/** A peer that runs requests of this node: a handful can start at once without waiting for one to be opened. */
const stockOfAsked: Stock = {max: 6, low: 3};

/** In a mesh of fifty most peers are never asked, and each stream costs both sides a little. */
const stockOfOthers: Stock = {max: 2, low: 1};

/** Opening a spare must not compete with the request that has just taken one. */
const refillMs = 20;

/** A spare is not used after this long. The asked node keeps it for longer, so that it never ends one in use. */
export const spareMsMax: number = 5 * 60_000;

export interface LeasePoolParts {
  /** The connection to an admitted peer, if there is one. */
  readonly connection: (peer: NodeId) => Connection | undefined;
  /** Opens a lease stream on it. */
  readonly open: (connection: Connection, signal?: AbortSignal) => Promise<Stream>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Spare {
  readonly connection: Connection;
  readonly stream: Stream;
  readonly openedAtMs: number;
}

/**
 * Lease streams that are opened before they are needed: agreeing on the protocol costs a round trip, which no request
 * should wait for. They live and die with their connection.
 */
export class LeasePool implements Disposable {
  readonly #parts: LeasePoolParts;
  readonly #spares = new Map<NodeId, Spare[]>();
  readonly #opening = new Set<NodeId>();
  /** Peers that have been asked on the connection there is. */
  readonly #asked = new Set<NodeId>();
  readonly #due = new Map<NodeId, Disposable>();

  constructor(parts: LeasePoolParts) {
    this.#parts = parts;
  }

  /** A stream to the peer that nobody else uses; undefined when there is no connection. */
  async take(peer: NodeId, signal: AbortSignal): Promise<Stream | undefined> {
    const connection = this.#parts.connection(peer);
    if (connection === undefined) return undefined;
    this.#asked.add(peer);
    const spare = this.#usable(peer, connection).shift();
    this.warm(peer);
    return spare?.stream ?? this.#parts.open(connection, signal);
  }

  /** Fills up the spares of a peer soon, when the request that took one is on its way. */
  warm(peer: NodeId): void {
    if (this.#due.has(peer)) return;
    const later = (): void => {
      this.#due.delete(peer);
      if (!this.#opening.has(peer)) void this.#fill(peer);
    };
    this.#due.set(peer, this.#parts.clock.after(refillMs, later));
  }

  /** The connection is gone, and its streams with it. */
  forget(peer: NodeId): void {
    this.#spares.delete(peer);
    this.#asked.delete(peer);
    this.#due.get(peer)?.[Symbol.dispose]();
    this.#due.delete(peer);
  }

  [Symbol.dispose](): void {
    for (const due of this.#due.values()) due[Symbol.dispose]();
    this.#due.clear();
  }

  async #fill(peer: NodeId): Promise<void> {
    const connection = this.#parts.connection(peer);
    if (connection === undefined) return;
    const {length} = this.#usable(peer, connection);
    const {low, max} = this.#asked.has(peer) ? stockOfAsked : stockOfOthers;
    if (length > low) return;
    this.#opening.add(peer);
    await Promise.all(Array.from({length: max - length}, async () => this.#openSpare(peer, connection)));
    this.#opening.delete(peer);
  }

  async #openSpare(peer: NodeId, connection: Connection): Promise<void> {
    try {
      const stream = await this.#parts.open(connection);
      if (this.#parts.connection(peer) !== connection) return stream.abort(new Error('the connection was replaced'));
      this.#usable(peer, connection).push({connection, stream, openedAtMs: this.#parts.clock.monotonicMs()});
    } catch (error) {
      // The next request opens its own, and reports what is wrong.
      this.#parts.log('debug', 'could not open a lease stream in advance', {peer, error: String(error)});
    }
  }

  /** The spares that are still good on the connection in use; the others are ended. */
  #usable(peer: NodeId, connection: Connection): Spare[] {
    const oldestMs = this.#parts.clock.monotonicMs() - spareMsMax;
    const [good, rest] = split(
      this.#spares.get(peer) ?? [],
      spare => spare.connection === connection && spare.openedAtMs > oldestMs && isUntouched(spare.stream),
    );
    for (const {stream} of rest) if (stream.status === 'open') stream.abort(new Error('the stream is not needed'));
    this.#spares.set(peer, good);
    return good;
  }
}

/** A peer that has closed its side before the offer will not answer on it. */
function isUntouched({status, readStatus, writeStatus}: Stream): boolean {
  return status === 'open' && readStatus === 'readable' && writeStatus === 'writable';
}

function split<T>(items: readonly T[], isGood: (item: T) => boolean): readonly [T[], T[]] {
  return [items.filter(isGood), items.filter(item => !isGood(item))];
}
