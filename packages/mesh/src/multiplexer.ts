import {yamux} from '@chainsafe/libp2p-yamux';
import type {StreamMuxer, StreamMuxerFactory} from '@libp2p/interface';
import type {Clock} from '@hearsay/core';
import {LinkWatch} from './link-watch.ts';
import {sendTogether} from './send-together.ts';
import {updateSparingly} from './update-sparingly.ts';

type Settings = NonNullable<Parameters<typeof yamux>[0]>;

/** yamux on connections that end when their peer has fallen silent, and that send frames together. */
export function multiplexer(settings: Settings, clock: Clock): () => StreamMuxerFactory {
  const create = yamux({...settings, enableKeepAlive: false});
  const silence = new LinkWatch(clock);
  return () => {
    const factory = create();
    return {
      protocol: factory.protocol,
      createStreamMuxer(connection) {
        const flush = sendTogether(connection);
        const muxer = factory.createStreamMuxer(connection);
        flushAtEnd(muxer, flush);
        updateAllSparingly(muxer);
        silence.watch(connection, {
          ask: () => void ask(muxer),
          lost(fault) {
            muxer.abort(fault);
            connection.abort(fault);
          },
        });
        return muxer;
      },
    };
  };
}

/**
 * Every record, ping and answer comes in a few small frames, so most packets of a mesh at rest would be updates of
 * windows. Streams of both directions are made by this method, which is none of the interface's.
 */
function updateAllSparingly(muxer: StreamMuxer): void {
  const create: unknown = Reflect.get(muxer, '_newStream');
  if (typeof create !== 'function') return;
  Reflect.set(muxer, '_newStream', (...args: unknown[]) => {
    const stream: unknown = Reflect.apply(create, muxer, args);
    if (typeof stream === 'object' && stream !== null) updateSparingly(stream);
    return stream;
  });
}

/**
 * A ping of yamux, which every node answers: twelve bytes there, and as many back. True when an answer has come; false
 * where none can be asked for. No interface names it.
 */
export async function askForLife(connection: object): Promise<boolean> {
  const muxer: unknown = Reflect.get(connection, 'muxer');
  return typeof muxer === 'object' && muxer !== null && ask(muxer);
}

async function ask(muxer: object): Promise<boolean> {
  const ping: unknown = Reflect.get(muxer, 'ping');
  if (typeof ping !== 'function') return false;
  try {
    await Reflect.apply(ping, muxer, []);
    return true;
  } catch {
    return false; // the connection has ended, which is noticed elsewhere
  }
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
