import type {MessageStream} from '@libp2p/interface';
import {Fault} from '@hearsay/core';
import type {Clock} from '@hearsay/core';

/** How often it is looked whether anything has come. */
const lookMs = 500;

/**
 * Looks in a row without a byte, after which the peer is asked for a sign of life: after two seconds, and two more.
 * Beats come as often, so this is rare.
 */
const askingLooks: readonly number[] = [5, 9];

/** Looks in a row without a byte, after which the peer is gone. */
const silentLooksMax = 11;

interface Silence {
  /** Sends something that the peer answers. */
  readonly ask: () => void;
  readonly lost: (fault: Fault) => void;
}

/** What is watched of a connection. */
type Link = Pick<MessageStream, 'addEventListener'>;

/**
 * Calls `ask` when nothing has come on a connection for a while, and `lost` when nothing has for long. Whatever comes
 * counts, not only an answer to a ping: on a slow link that waits its turn behind megabytes of other streams. And only
 * looks count, not time: while this node itself stands still, or is starved of its processor, it cannot hear anybody.
 * All connections are looked at together, so that a node of a large mesh is not woken for each by itself.
 */
export class LinkWatch {
  readonly #clock: Clock;
  readonly #looks = new Set<() => void>();
  #timer: Disposable | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  watch(connection: Link, {ask, lost}: Silence): void {
    let silentLooks = 0;
    const look = (): void => {
      silentLooks += 1;
      if (askingLooks.includes(silentLooks)) ask();
      if (silentLooks <= silentLooksMax) return;
      this.#forget(look);
      lost(new Fault('PEER_FAILED', `nothing was heard from the other node for ${(silentLooksMax * lookMs) / 1000} s`));
    };
    this.#looks.add(look);
    this.#timer ??= this.#lookLater();
    connection.addEventListener('message', () => {
      silentLooks = 0;
    });
    connection.addEventListener('close', () => this.#forget(look));
  }

  #lookLater(): Disposable {
    return this.#clock.after(lookMs, () => {
      this.#timer = this.#lookLater();
      for (const look of this.#looks) look();
    });
  }

  #forget(look: () => void): void {
    this.#looks.delete(look);
    if (this.#looks.size > 0) return;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
  }
}
