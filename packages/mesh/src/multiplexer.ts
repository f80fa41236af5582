import {yamux} from '@chainsafe/libp2p-yamux';
import type {StreamMuxer, StreamMuxerFactory} from '@libp2p/interface';
import type {Clock} from '@hearsay/core';
import {watchSilence} from './link-watch.ts';
import {sendTogether} from './send-together.ts';

/** yamux asks the peer for a sign of life this often: a frame of twelve bytes there, another one back. */
const askMs = 2000;

type Settings = NonNullable<Parameters<typeof yamux>[0]>;

/** yamux on connections that end when their peer has fallen silent, and that send frames together. */
export function multiplexer(settings: Settings, clock: Clock): () => StreamMuxerFactory {
  const create = yamux({...settings, enableKeepAlive: true, keepAliveInterval: askMs});
  return () => {
    const factory = create();
    return {
      protocol: factory.protocol,
      createStreamMuxer(connection) {
        const flush = sendTogether(connection);
        const muxer = factory.createStreamMuxer(connection);
        flushAtEnd(muxer, flush);
        watchSilence(connection, clock, fault => {
          muxer.abort(fault);
          connection.abort(fault);
        });
        return muxer;
      },
    };
  };
}

/** libp2p closes the connection next, below what has been changed of it; the last frames must be out by then. */
function flushAtEnd(muxer: StreamMuxer, flush: () => void): void {
  const close = muxer.close.bind(muxer);
  const abort = muxer.abort.bind(muxer);
  muxer.close = async options => {
    await close(options);
    flush();
  };
  muxer.abort = error => {
    abort(error);
    flush();
  };
}
