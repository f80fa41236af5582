import type {Connection} from '@libp2p/interface';
import type {Clock, NodeId} from '@hearsay/core';
import {askForLife} from './multiplexer.ts';

/** How often the round trip to each peer is measured. */
const roundTripMs = 10_000;

/** Among more than ten peers one is measured a second, however many they are. */
const measuringMsMin = 1000;

/** What others are told again: smaller differences change no choice. */
const changeMsMin = 1;
const changeShare = 0.2;

interface RoundTripsDeps {
  readonly links: {
    readonly admitted: () => readonly NodeId[];
    readonly connection: (node: NodeId) => Pick<Connection, 'rtt'> | undefined;
  };
  readonly clock: Clock;
  /** The round trip to a peer is known now, or another one. */
  readonly changed: (node: NodeId) => void;
}

/**
 * Measures how far away the peers are, each in its turn, by a ping of yamux: two packets of a few bytes. (The one of
 * libp2p is a protocol with a stream of its own, which takes a dozen, and all peers at once.)
 */
export class RoundTrips implements Disposable {
  readonly #deps: RoundTripsDeps;
  #timer: Disposable | undefined;
  #turn = 0;
  #closed = false;

  constructor(deps: RoundTripsDeps) {
    this.#deps = deps;
    this.#schedule();
  }

  /** Of a peer that is admitted for the first time on its connection: a choice may depend on it from now on. */
  begin(node: NodeId): void {
    if (this.#deps.links.connection(node)?.rtt === undefined) void this.#measure(node);
  }

  #schedule(): void {
    const {links, clock} = this.#deps;
    const peers = Math.max(1, links.admitted().length);
    this.#timer = clock.after(Math.max(measuringMsMin, roundTripMs / peers), () => {
      const admitted = links.admitted();
      this.#turn += 1;
      const next = admitted[this.#turn % admitted.length];
      if (next !== undefined) void this.#measure(next);
      if (!this.#closed) this.#schedule();
    });
  }

  async #measure(node: NodeId): Promise<void> {
    const {links, clock, changed} = this.#deps;
    const connection = links.connection(node);
    if (connection === undefined) return;
    const askedMs = clock.monotonicMs();
    const isAnswered = await askForLife(connection);
    if (!isAnswered || this.#closed || links.connection(node) !== connection) return;
    const before = connection.rtt;
    connection.rtt = clock.monotonicMs() - askedMs;
    const difference = Math.abs(connection.rtt - (before ?? 0));
    if (before === undefined || difference > Math.max(changeMsMin, changeShare * before)) changed(node);
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.#timer?.[Symbol.dispose]();
  }
}
