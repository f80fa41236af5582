import type {IncomingMessage} from 'node:http';
import type {Stream} from '@libp2p/interface';
import {decodeOfferAnswer, encodeOffer, Fault, offerBytesMax, shortNode, timeLimit} from '@hearsay/core';
import type {Accepted, Busy, Clock, Lease, NodeId, Refusal, Worker, WorkRequest, WorkResponse} from '@hearsay/core';
import type {SignedRecord} from '@hearsay/core';
import {cancelled, carriedCode, faultHeader, reasonBytesMax, recordFromText, recordTrailer} from './lease-http.ts';
import {StreamDuplex} from './stream-duplex.ts';

// An `import` of this module also loads the whole of `fetch`, which nothing here uses: 20 ms and 4 MB of every start.
const {request: httpRequest} = process.getBuiltinModule('node:http');

/** Opening a stream on a live connection takes two round trips; more than this means that the peer is gone. */
const openMsMax = 1500;

/** A worker answers from its own state at once; this leaves room for a busy machine and a slow radio link. */
const answerMsMax = 5000;

/** A longer body is only sent to a node that has accepted it. The asked node keeps this much while it decides. */
const earlyBytesMax = 32 * 1024;

/** Opens a lease stream to one peer, or throws when there is no admitted connection. */
export type OpenStream = (signal: AbortSignal) => Promise<Stream>;

/** A peer as a worker: one stream for each request, from the offer to the last byte of the answer. */
export function peerWorker(node: NodeId, open: OpenStream, clock: Clock): Worker {
  return {
    node,
    async offer(request, signal) {
      if (signal.aborted) throw cancelled(signal);
      try {
        return await offerOn(await openWithin(open, clock, signal), {node, request, clock, signal});
      } catch (cause) {
        throw signal.aborted ? cancelled(signal) : peerFailed(node, 'did not answer an offer', cause);
      }
    },
  };
}

async function openWithin(open: OpenStream, clock: Clock, signal: AbortSignal): Promise<Stream> {
  using limit = timeLimit(clock, openMsMax, 'opening a stream to the other node', signal);
  return await open(limit.signal);
}

interface Offering {
  readonly node: NodeId;
  readonly request: WorkRequest;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

async function offerOn(stream: Stream, offering: Offering): Promise<Lease | Busy | Refusal> {
  const {node, request, clock, signal} = offering;
  const duplex = new StreamDuplex(stream);
  duplex.on('error', ignoreError); // whoever reads or writes is told; nobody else needs to be
  using limit = timeLimit(clock, answerMsMax, 'the answer to an offer', signal);
  try {
    duplex.writeFrame(encodeOffer({...request, hop: request.hop + 1}));
    const {body} = request;
    const early = body !== undefined && body.length <= earlyBytesMax ? send(duplex, request, body) : undefined;
    early?.catch(ignoreError); // whoever runs the lease is told
    const answer = decodeOfferAnswer(await duplex.readFrame(offerBytesMax, limit.signal, 'last'));
    if (answer.kind === 'accepted') return new PeerLease(duplex, answer, {node, request, early});
    if (early) duplex.destroy();
    else duplex.resume().end();
    return answer;
  } catch (error) {
    duplex.destroy();
    throw error;
  }
}

/** One HTTP exchange over the stream, up to the head of its answer. */
function send(duplex: StreamDuplex, {endpoint, contentType}: WorkRequest, body: Uint8Array): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({
      method: 'POST',
      path: endpoint,
      createConnection: () => duplex,
      headers: {
        host: 'hearsay', // HTTP demands one; the stream itself says who is meant
        connection: 'close',
        'content-type': contentType ?? 'application/json',
        'content-length': body.length,
      },
    });
    outgoing.on('error', reject);
    outgoing.on('response', resolve);
    outgoing.end(body);
  });
}

interface Sent {
  readonly node: NodeId;
  readonly request: WorkRequest;
  readonly early: Promise<IncomingMessage> | undefined;
}

/** A slot on another node, for as long as the stream lives. */
class PeerLease implements Lease {
  readonly kind = 'accepted';
  readonly digest: Accepted['digest'];
  readonly loadSeq: number | undefined;
  readonly #duplex: StreamDuplex;
  readonly #node: NodeId;
  readonly #request: WorkRequest;
  /** The answer to a body that went with the offer. */
  readonly #early: Promise<IncomingMessage> | undefined;
  #whole = false;

  constructor(duplex: StreamDuplex, accepted: Accepted, {node, request, early}: Sent) {
    this.digest = accepted.digest;
    this.loadSeq = accepted.loadSeq;
    this.#duplex = duplex;
    this.#node = node;
    this.#request = request;
    this.#early = early;
  }

  async run(body: Uint8Array, signal: AbortSignal): Promise<WorkResponse> {
    const duplex = this.#duplex;
    if (signal.aborted) {
      duplex.destroy();
      throw cancelled(signal);
    }
    if (duplex.destroyed) throw peerFailed(this.#node, 'went away before the request was sent', duplex.errored);
    const abort = (): void => void duplex.destroy(cancelled(signal));
    signal.addEventListener('abort', abort, {once: true});
    duplex.once('close', () => signal.removeEventListener('abort', abort));
    const response = await (this.#early ?? send(duplex, this.#request, body)).catch(cause => {
      duplex.destroy();
      throw signal.aborted ? cancelled(signal) : peerFailed(this.#node, 'went away before it answered', cause);
    });
    response.on('error', ignoreError); // a body that nobody reads must not end the process
    const fault = response.headers[faultHeader];
    if (typeof fault === 'string') throw await this.#readFault(response, fault);
    let record: SignedRecord | undefined;
    return {
      status: response.statusCode ?? 0,
      contentType: response.headers['content-type'] ?? 'application/json',
      body: this.#readBody(response, signal, trailer => {
        this.#whole = true;
        record = recordFromText(trailer);
      }),
      record: () => record,
    };
  }

  async *#readBody(
    response: IncomingMessage,
    signal: AbortSignal,
    ended: (trailer: string | undefined) => void,
  ): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of response) if (chunk instanceof Uint8Array) yield chunk;
    } catch (cause) {
      if (signal.aborted) throw cancelled(signal);
      // What came together with the break is still in the stream, whose iterator leaves it there.
      const last: unknown = response.read();
      if (last instanceof Uint8Array) yield last;
      throw peerFailed(this.#node, 'lost its engine or went away in the middle of an answer', cause);
    }
    if (!response.complete) throw peerFailed(this.#node, 'ended an answer before it was whole', undefined);
    ended(response.trailers[recordTrailer]);
  }

  async #readFault(response: IncomingMessage, code: string): Promise<Fault> {
    let reason = '';
    try {
      for await (const chunk of response) {
        reason += String(chunk);
        if (reason.length > reasonBytesMax) break;
      }
    } catch {
      // The code alone is worth telling.
    }
    await this[Symbol.asyncDispose]();
    const message = reason.slice(0, reasonBytesMax) || 'it gave no reason';
    return new Fault(carriedCode(code), message, {details: {node: this.#node}});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // After a whole answer node:http closes the stream in order; any other is reset, which ends the run over there.
    if (!this.#whole) this.#duplex.destroy();
  }
}

function peerFailed(node: NodeId, what: string, cause: unknown): Fault {
  if (cause instanceof Fault && cause.code === 'PEER_FAILED') return cause;
  return new Fault('PEER_FAILED', `node ${shortNode(node)} ${what}`, {cause, details: {node}});
}

function ignoreError(): void {}
