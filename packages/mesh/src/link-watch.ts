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

/**
 * Calls `ask` when nothing has come for a while, and `lost` when nothing has for long. Whatever comes counts, not only
 * an answer to a ping: on a slow link that waits its turn behind megabytes of other streams. And only looks count, not
 * time: while this node itself stands still, or is starved of its processor, it cannot hear anybody.
 */
export function watchSilence(
  connection: Pick<MessageStream, 'addEventListener'>,
  clock: Clock,
  {ask, lost}: Silence,
): void {
  let silentLooks = 0;
  let timer: Disposable;
  const look = (): void => {
    silentLooks += 1;
    if (silentLooks > silentLooksMax) {
      lost(new Fault('PEER_FAILED', `nothing was heard from the other node for ${(silentLooksMax * lookMs) / 1000} s`));
      return;
    }
    timer = clock.after(lookMs, look);
    if (askingLooks.includes(silentLooks)) ask();
  };
  timer = clock.after(lookMs, look);
  connection.addEventListener('message', () => {
    silentLooks = 0;
  });
  connection.addEventListener('close', () => timer[Symbol.dispose]());
}
