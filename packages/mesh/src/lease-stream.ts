import {once} from 'node:events';
import type {IncomingMessage, ServerResponse} from 'node:http';
import type {Stream} from '@libp2p/interface';
import {
  asFault,
  decodeOffer,
  describeError,
  encodeOfferAnswer,
  Fault,
  offerBytesMax,
  sentBytesMax,
  timeLimit,
  untilAborted,
} from '@hearsay/core';
import type {Busy, Clock, Lease, Log, MeshHandlers, NodeId, OfferAnswer, Refusal, WorkRequest} from '@hearsay/core';
import {faultHeader, reasonBytesMax, recordToText, recordTrailer} from './lease-http.ts';
import {spareMsMax} from './lease-pool.ts';
import {StreamDuplex} from './stream-duplex.ts';

// An `import` of this module also loads the whole of `fetch`, which nothing here uses: 20 ms and 4 MB of every start.
const {Server} = process.getBuiltinModule('node:http');

/** Streams are opened before they are needed; one that carries no offer for this long is ended. */
const offerMsMax = 2 * spareMsMax;

/** A slot may be held without a request for this long, no longer: the asking node sends it in the next instant. */
const requestMsMax = 10_000;

/**
 * The head of an answer waits this long for the first bytes, to travel with them in one packet, and so long `accept`
 * waits for the head when there is a request already: each packet costs both nodes more than what is in it, just while
 * the engine is to begin.
 */
const headMsMax = 10;

/** Largest body over a slow radio link (a megabyte a second). */
const bodyMsMax = 60_000;

/** Made once: every stream ends with it, and a stack trace each time would cost more than the rest of the ending. */
const askerGone = new Fault('PEER_FAILED', 'the asking node went away or cancelled');

/** One accepted lease while its HTTP exchange runs. */
interface Held {
  readonly lease: Lease;
  readonly request: WorkRequest;
  readonly gone: AbortSignal;
  readonly begun: () => void;
  readonly finished: (error?: unknown) => void;
  /** Tells the asker that it was accepted, if it has not been told yet. */
  readonly say: () => void;
}

/** The asked end of lease streams: answers offers and serves one HTTP exchange on each stream that it accepted. */
export class LeaseStreams {
  readonly #offer: MeshHandlers['offer'];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #open = new Set<StreamDuplex>();
  readonly #held = new WeakMap<object, Held>();
  /** It never listens: streams are handed to it one by one. */
  readonly #http = new Server({requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0});

  constructor(offer: MeshHandlers['offer'], clock: Clock, log: Log) {
    this.#offer = offer;
    this.#clock = clock;
    this.#log = log;
    this.#http.on('request', (request, response) => void this.#answer(request, response));
  }

  /** Serves one stream of an admitted peer to its end. Never rejects: a broken stream is the asking node's news. */
  async serve(stream: Stream, from: NodeId): Promise<void> {
    const duplex = new StreamDuplex(stream);
    const gone = new AbortController();
    duplex.on('error', () => undefined); // `close` follows
    duplex.once('close', () => {
      this.#open.delete(duplex);
      gone.abort(askerGone);
    });
    this.#open.add(duplex);
    try {
      const request = decodeOffer(await this.#readOffer(duplex, gone.signal));
      const answer = await this.#decide(request, from, gone.signal);
      if (answer.kind === 'accepted') await this.#hold(duplex, answer, request, gone.signal);
      else this.#say(duplex, answer).resume().end();
    } catch (error) {
      this.#log('debug', 'a lease stream broke', {from, reason: describeError(error)});
      duplex.destroy(asFault(error, 'INTERNAL'));
    }
  }

  async #readOffer(duplex: StreamDuplex, signal: AbortSignal): Promise<Uint8Array> {
    using limit = timeLimit(this.#clock, offerMsMax, 'an offer', signal);
    return await duplex.readFrame(offerBytesMax, limit.signal);
  }

  async #decide(request: WorkRequest, from: NodeId, signal: AbortSignal): Promise<Lease | Busy | Refusal> {
    if (request.bodyBytes > sentBytesMax) {
      return {kind: 'refused', code: 'too-large', message: `a body may have ${sentBytesMax} bytes at most`};
    }
    try {
      return await this.#offer(request, from, signal);
    } catch (error) {
      return {kind: 'refused', code: 'broken', message: describeError(error)};
    }
  }

  #say(duplex: StreamDuplex, answer: OfferAnswer): StreamDuplex {
    duplex.writeFrame(encodeOfferAnswer(answer));
    duplex.startBytes();
    return duplex;
  }

  /** Holds the lease for one exchange and gives it back however that ends. */
  async #hold(duplex: StreamDuplex, accepted: Lease, request: WorkRequest, gone: AbortSignal): Promise<void> {
    await using lease = accepted;
    gone.throwIfAborted();
    const exchange = Promise.withResolvers<void>();
    exchange.promise.catch(() => undefined); // it may break before anybody waits for it
    using silence = this.#clock.after(requestMsMax, () => {
      exchange.reject(new Fault('TIMED_OUT', `no request followed the lease within ${requestMsMax} ms`));
    });
    const end = (): void => exchange.reject(asFault(gone.reason, 'PEER_FAILED'));
    gone.addEventListener('abort', end, {once: true});
    const finished = (error?: unknown): void => (error === undefined ? exchange.resolve() : exchange.reject(error));
    let isSaid = false;
    const say = (): void => {
      if (isSaid || duplex.destroyed) return;
      isSaid = true;
      duplex.writeFrame(encodeOfferAnswer({kind: 'accepted', digest: lease.digest, loadSeq: lease.loadSeq}));
    };
    using _later = this.#clock.after(duplex.hasBytes ? headMsMax : Infinity, say);
    if (!duplex.hasBytes) say();
    this.#held.set(duplex, {lease, request, gone, begun: () => silence[Symbol.dispose](), finished, say});
    duplex.startBytes();
    this.#http.emit('connection', duplex);
    await exchange.promise;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const held = this.#held.get(request.socket);
    if (held === undefined) return void request.socket.destroy();
    this.#held.delete(request.socket); // one exchange for each lease
    held.begun();
    try {
      const body = await this.#readBody(request, held);
      await this.#run(body, held, response);
      held.finished();
    } catch (error) {
      if (response.headersSent || held.gone.aborted) return held.finished(error);
      held.say();
      await sendFault(response, error);
      held.finished();
    }
  }

  async #readBody(request: IncomingMessage, {request: offered, gone}: Held): Promise<Uint8Array> {
    const announced = Number(request.headers['content-length']);
    if (announced !== offered.bodyBytes) {
      throw new Fault('BAD_REQUEST', `a body of ${offered.bodyBytes} bytes was offered, but ${announced} came`);
    }
    using limit = timeLimit(this.#clock, bodyMsMax, 'the body of a request', gone);
    const stop = (): void => void request.destroy(asFault(limit.signal.reason, 'TIMED_OUT'));
    limit.signal.addEventListener('abort', stop, {once: true});
    const body = await wholeBody(request);
    limit.signal.removeEventListener('abort', stop);
    return body;
  }

  async #run(body: Uint8Array, {lease, gone, say}: Held, response: ServerResponse): Promise<void> {
    const answer = await lease.run(body, gone);
    say();
    response.writeHead(answer.status, {
      'content-type': answer.contentType,
      trailer: recordTrailer,
      connection: 'close',
    });
    using head = this.#clock.after(headMsMax, () => response.flushHeaders());
    let left = Promise.resolve();
    try {
      for await (const chunk of answer.body) {
        head[Symbol.dispose]();
        gone.throwIfAborted();
        const {promise, resolve} = Promise.withResolvers<void>();
        left = promise;
        if (!response.write(chunk, () => resolve())) await once(response, 'drain', {signal: gone});
      }
      gone.throwIfAborted();
    } catch (error) {
      await left; // what came before the break still reaches the asker: breaking the stream would drop it
      throw error;
    }
    const record = answer.record();
    if (record !== undefined) response.addTrailers({[recordTrailer]: recordToText(record)});
    await untilAborted(new Promise<void>(resolve => void response.end(resolve)), gone);
  }

  /** Resets every stream, which each asking node sees at once as a failure. */
  close(): void {
    for (const duplex of this.#open) duplex.destroy(new Fault('PEER_FAILED', 'this node is stopping'));
  }
}

/** Rejects when the stream ends before it: node:http itself holds a body to its content-length. */
function wholeBody(request: IncomingMessage): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    request.on('data', (chunk: Uint8Array) => chunks.push(chunk));
    request.on('end', () => {
      const {buffer, byteOffset, length} = Buffer.concat(chunks);
      resolve(new Uint8Array(buffer, byteOffset, length));
    });
    request.on('error', reject);
    request.on('close', () => {
      if (!request.complete) reject(new Fault('PEER_FAILED', 'the body of a request was cut'));
    });
  });
}

/** Says why nothing will come, which is possible only as long as nothing has been sent. */
async function sendFault(response: ServerResponse, error: unknown): Promise<void> {
  const fault = asFault(error, 'ENGINE_FAILED');
  const text = Buffer.from(fault.message).subarray(0, reasonBytesMax);
  response.writeHead(502, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': text.length,
    [faultHeader]: fault.code,
    connection: 'close',
  });
  const sent = new Promise<void>(resolve => void response.once('close', resolve).once('finish', resolve));
  response.end(text);
  await sent;
}
