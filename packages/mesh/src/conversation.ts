import type {Stream} from '@libp2p/interface';
import {messageStreamToDuplex} from '@libp2p/utils';
import {decode, encode} from 'it-length-prefixed';
import {pipe} from 'it-pipe';
import {Fault, timeLimit} from '@hearsay/core';
import type {Clock} from '@hearsay/core';

/** Reads the peer's next frame; throws PEER_FAILED when the peer ended instead. */
export type NextFrame = () => Promise<Uint8Array>;

/** One side of a small exchange: yields its frames and reads the peer's in between. */
export type Talk = (next: NextFrame) => AsyncGenerator<Uint8Array>;

export interface ConversationLimits {
  readonly clock: Clock;
  readonly frameBytesMax: number;
  /** For the whole conversation. */
  readonly msMax: number;
  readonly signal?: AbortSignal | undefined;
}

type Chunk = ReturnType<typeof encode.single>;

/** Frames that either side says in one conversation: a greeting and everything else. */
const framesMax = 2;

/**
 * Holds one conversation of a few length-prefixed frames on a stream, and closes the stream. Only for what fits into
 * memory: reading has no back-pressure here, so the number of bytes is bounded instead, also of those that come when
 * all has been said.
 */
export async function converse(stream: Stream, talk: Talk, limits: ConversationLimits): Promise<void> {
  using limit = timeLimit(limits.clock, limits.msMax, `a conversation on ${stream.protocol}`, limits.signal);
  cutWhenLonger(stream, framesMax * limits.frameBytesMax);
  const over = Promise.withResolvers<never>();
  const abort = (): void => {
    stream.abort(asError(limit.signal.reason));
    over.reject(limit.signal.reason); // aborting a stream does not always wake the one who reads it
  };
  if (limit.signal.aborted) abort();
  limit.signal.addEventListener('abort', abort, {once: true});
  try {
    const duplex = messageStreamToDuplex(stream);
    const talked = pipe(
      duplex.source,
      source => decode(source, {maxDataLength: limits.frameBytesMax}),
      frames => talk(nextOf(frames)),
      frames => encode(frames),
      duplex.sink,
    );
    await Promise.race([talked, over.promise]);
  } catch (error) {
    stream.abort(asError(error));
    throw limit.signal.aborted ? limit.signal.reason : error;
  } finally {
    limit.signal.removeEventListener('abort', abort);
  }
}

function cutWhenLonger(stream: Stream, bytesMax: number): void {
  let bytes = 0;
  stream.addEventListener('message', ({data}) => {
    bytes += data.byteLength;
    if (bytes > bytesMax)
      stream.abort(new Fault('PEER_FAILED', 'the other node said more than a conversation may hold'));
  });
}

function nextOf(frames: AsyncIterable<Pick<Chunk, 'subarray'>>): NextFrame {
  const iterator = frames[Symbol.asyncIterator]();
  return async () => {
    const {done, value} = await iterator.next();
    if (done === true) throw new Fault('PEER_FAILED', 'the other node ended a conversation early');
    return value.subarray();
  };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
