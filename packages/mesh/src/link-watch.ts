import {yamux} from '@chainsafe/libp2p-yamux';
import type {MessageStream, StreamMuxerFactory} from '@libp2p/interface';
import {Fault} from '@hearsay/core';
import type {Clock} from '@hearsay/core';

/** yamux asks the peer for a sign of life this often: a frame of twelve bytes there, another one back. */
const askMs = 2000;

/** How often it is looked whether anything has come. */
const lookMs = 500;

/** Looks in a row without a byte, after which the peer is gone: nearly three of its answers are missing by then. */
const silentLooksMax = 11;

type Settings = NonNullable<Parameters<typeof yamux>[0]>;

/** yamux that ends a connection when its peer has fallen silent. */
export function watchedYamux(settings: Settings, clock: Clock): () => StreamMuxerFactory {
  const create = yamux({...settings, enableKeepAlive: true, keepAliveInterval: askMs});
  return () => {
    const factory = create();
    return {
      protocol: factory.protocol,
      createStreamMuxer(connection) {
        const muxer = factory.createStreamMuxer(connection);
        watchSilence(connection, clock, fault => {
          muxer.abort(fault);
          connection.abort(fault);
        });
        return muxer;
      },
    };
  };
}

/**
 * Calls `lost` when nothing at all comes for long. Whatever comes counts, not only an answer to a ping: on a slow link
 * that waits its turn behind megabytes of other streams. And only looks count, not time: while this node itself stands
 * still, or is starved of its processor, it cannot hear anybody.
 */
export function watchSilence(
  connection: Pick<MessageStream, 'addEventListener'>,
  clock: Clock,
  lost: (fault: Fault) => void,
): void {
  let silentLooks = 0;
  let timer: Disposable;
  const look = (): void => {
    silentLooks += 1;
    if (silentLooks > silentLooksMax) {
      lost(new Fault('PEER_FAILED', `nothing was heard from the other node for ${(silentLooksMax * lookMs) / 1000} s`));
    } else timer = clock.after(lookMs, look);
  };
  timer = clock.after(lookMs, look);
  connection.addEventListener('message', () => {
    silentLooks = 0;
  });
  connection.addEventListener('close', () => timer[Symbol.dispose]());
}
