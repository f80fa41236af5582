import type {Connection, Stream} from '@libp2p/interface';
import {describeError, doubtSelf, noDoubt} from '@hearsay/core';
import type {Environment, SelfDoubt} from '@hearsay/core';

const pingProtocol = '/ipfs/ping/1.0.0';
const pingBytes = 32;

/** Between two rounds of pings, and for one of them: a dead link is noticed within six seconds. */
const pingIntervalMs = 3000;
const silenceMsMin = 2000;
const silenceMsMax = 4000;
/** A path of many hops is allowed some round trips, as opening the stream takes two. */
const roundTripsMax = 8;

/** How often it is looked who is silent, and whether this node itself is late. */
const lookMs = 250;

type Pulsed = Pick<Connection, 'remotePeer' | 'status' | 'rtt' | 'newStream' | 'abort'>;

export interface PulseDeps extends Pick<Environment, 'clock' | 'log' | 'random'> {
  /** Every connection that is open now. */
  readonly connections: () => readonly Pulsed[];
}

/**
 * Pings every connection and cuts the ones that are silent, since TCP would notice a pulled cable after minutes only.
 * libp2p's own monitor counts the time in which this process did not run against its peers; here a node that is late
 * doubts itself first, and waits longer for everybody.
 */
export function keepPulse({clock, connections, log, random}: PulseDeps): Disposable {
  /** Pings under way, and when they were sent. */
  const sent = new Map<Pulsed, number>();
  const end = new AbortController();
  let doubt: SelfDoubt = noDoubt;
  let lookedMs = clock.monotonicMs();
  let roundMs = lookedMs;
  let timer: Disposable;

  function look(): void {
    const nowMs = clock.monotonicMs();
    const open = connections().filter(({status}) => status === 'open');
    const silent = open.filter(each => silentMs(each, nowMs) > limitMs(each));
    doubt = doubtSelf(doubt, {
      nowMs,
      lateMs: nowMs - lookedMs - lookMs,
      others: countPeers(open),
      silent: countPeers(silent),
    });
    lookedMs = nowMs;
    for (const connection of silent) {
      if (silentMs(connection, nowMs) <= limitMs(connection) + doubt.graceMs) continue;
      log('debug', 'a connection is silent and is cut', {to: connection.remotePeer.toString(), graceMs: doubt.graceMs});
      connection.abort(new Error('the other node is silent'));
    }
    // All in one round: only then can it be seen that all are silent at once.
    if (nowMs - roundMs >= pingIntervalMs) {
      roundMs = nowMs;
      for (const connection of open) if (!sent.has(connection)) void ping(connection, nowMs);
    }
    timer = clock.after(lookMs, look);
  }

  function silentMs(connection: Pulsed, nowMs: number): number {
    return nowMs - (sent.get(connection) ?? nowMs);
  }

  /** Never rejects. A ping that fails otherwise than by silence says that the connection is of no use. */
  async function ping(connection: Pulsed, nowMs: number): Promise<void> {
    sent.set(connection, nowMs);
    try {
      const stream = await connection.newStream(pingProtocol, {signal: end.signal, runOnLimitedConnection: true});
      const sentMs = clock.monotonicMs();
      await pong(stream, random.bytes(pingBytes), end.signal);
      connection.rtt = clock.monotonicMs() - sentMs;
    } catch (error) {
      if (end.signal.aborted || connection.status !== 'open') return;
      // Whoever does not know this protocol has answered.
      if (!(error instanceof Error && error.name === 'UnsupportedProtocolError')) {
        log('debug', 'a connection failed its ping and is cut', {reason: describeError(error)});
        connection.abort(error instanceof Error ? error : new Error(String(error)));
      }
    } finally {
      sent.delete(connection);
    }
  }

  timer = clock.after(lookMs, look);
  return {
    [Symbol.dispose]() {
      timer[Symbol.dispose]();
      end.abort();
    },
  };
}

function limitMs({rtt = 0}: Pulsed): number {
  return Math.min(silenceMsMax, Math.max(silenceMsMin, roundTripsMax * rtt));
}

function countPeers(connections: Iterable<Pulsed>): number {
  return new Set(Array.from(connections, ({remotePeer}) => remotePeer.toString())).size;
}

/** Sends the bytes and resolves when as many have come back. */
async function pong(stream: Stream, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  const {promise, resolve, reject} = Promise.withResolvers<void>();
  let left = bytes.byteLength;
  stream.addEventListener('message', ({data}) => {
    left -= data.byteLength;
    if (left <= 0) resolve();
  });
  stream.addEventListener('close', ({error}) => reject(error ?? new Error('the ping was ended early')));
  const abort = (): void => stream.abort(new Error('this node is stopping'));
  signal.addEventListener('abort', abort, {once: true});
  try {
    stream.send(bytes);
    await promise;
    await stream.close({signal});
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
