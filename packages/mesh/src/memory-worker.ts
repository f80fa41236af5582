import {decodeOffer, decodeOfferAnswer, decodeSignedRecord, encodeOffer, encodeOfferAnswer} from '@hearsay/core';
import {asFault, encodeSignedRecord, Fault, shortNode, untilAborted} from '@hearsay/core';
import type {
  Busy,
  Digest,
  Lease,
  NodeId,
  Refusal,
  SignedRecord,
  Worker,
  WorkRequest,
  WorkResponse,
} from '@hearsay/core';
import {cancelled, carriedCode} from './lease-http.ts';

/** One node's way to another in the twin of the mesh. */
export interface MemoryPath {
  /** Aborts when the path is cut or a node goes away. */
  readonly cut: AbortSignal;
  /** Waits as long as a message travels. */
  readonly travel: (signal: AbortSignal) => Promise<void>;
  readonly offer: (request: WorkRequest, signal: AbortSignal) => Promise<Lease | Busy | Refusal>;
}

/** A peer as a worker, without a network: everything still crosses as bytes, so that nothing else can. */
export function memoryWorker(node: NodeId, findPath: () => MemoryPath): Worker {
  return {
    node,
    async offer(request, signal) {
      if (signal.aborted) throw cancelled(signal);
      const path = findPath();
      const ended = new AbortController();
      const stop = AbortSignal.any([signal, path.cut]);
      const crossed = decodeOffer(encodeOffer({...request, hop: request.hop + 1}));
      try {
        await path.travel(stop);
        const asked = path.offer(crossed, AbortSignal.any([signal, path.cut, ended.signal]));
        const given = await untilAborted(asked.catch(broken), stop, late => void giveBack(late));
        const answer = decodeOfferAnswer(encodeOfferAnswer(given));
        if (answer.kind !== 'accepted' || given.kind !== 'accepted') return answer.kind === 'accepted' ? given : answer;
        await path.travel(stop).catch(async (error: unknown) => {
          await giveBack(given);
          throw error;
        });
        return new MemoryLease(given, answer.loadSeq, {node, path, ended});
      } catch (cause) {
        ended.abort();
        throw signal.aborted ? cancelled(signal) : peerFailed(node, 'did not answer an offer', cause);
      }
    },
  };
}

interface Holding {
  readonly node: NodeId;
  readonly path: MemoryPath;
  /** Aborts when the asking node gave the lease back. */
  readonly ended: AbortController;
}

class MemoryLease implements Lease {
  readonly kind = 'accepted';
  readonly digest: Digest;
  readonly loadSeq: number | undefined;
  readonly #given: Lease;
  readonly #holding: Holding;

  constructor(given: Lease, loadSeq: number | undefined, holding: Holding) {
    this.digest = given.digest;
    this.loadSeq = loadSeq;
    this.#given = given;
    this.#holding = holding;
    // Whatever ends the stream ends the run: here the stream is the path and the asking node's wish.
    holding.path.cut.addEventListener('abort', () => void giveBack(given), {once: true});
  }

  async run(body: Uint8Array, signal: AbortSignal): Promise<WorkResponse> {
    const {node, path, ended} = this.#holding;
    const stop = AbortSignal.any([signal, path.cut, ended.signal]);
    try {
      await path.travel(stop);
      const answer = await untilAborted(this.#given.run(Uint8Array.from(body), stop).catch(carry), stop);
      await path.travel(stop);
      let record: SignedRecord | undefined;
      const end = (): void => {
        const newest = answer.record();
        record = newest === undefined ? undefined : decodeSignedRecord(encodeSignedRecord(newest));
        void giveBack(this.#given);
      };
      return {
        status: answer.status,
        contentType: answer.contentType,
        body: this.#bytes(answer.body, signal, stop, end),
        record: () => record,
      };
    } catch (cause) {
      await this[Symbol.asyncDispose]();
      if (signal.aborted) throw cancelled(signal);
      throw cause instanceof CarriedFault ? cause.fault : peerFailed(node, 'went away before it answered', cause);
    }
  }

  async *#bytes(
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    stop: AbortSignal,
    end: () => void,
  ): AsyncGenerator<Uint8Array> {
    const {node, path} = this.#holding;
    const chunks = body[Symbol.asyncIterator]();
    try {
      for (;;) {
        const {done, value} = await untilAborted(chunks.next(), stop);
        await path.travel(stop);
        if (done === true) return end();
        yield Uint8Array.from(value);
      }
    } catch (cause) {
      if (signal.aborted) throw cancelled(signal);
      throw peerFailed(node, 'lost its engine or went away in the middle of an answer', cause);
    } finally {
      await this[Symbol.asyncDispose]();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#holding.ended.abort(new Fault('PEER_FAILED', 'the asking node went away or cancelled'));
    await giveBack(this.#given);
  }
}

/** A fault of the worker before any output, which crosses with its code and message only. */
class CarriedFault extends Error {
  readonly fault: Fault;

  constructor(fault: Fault) {
    super(fault.message);
    this.fault = fault;
  }
}

function carry(error: unknown): never {
  const fault = asFault(error, 'ENGINE_FAILED');
  throw new CarriedFault(new Fault(carriedCode(fault.code), fault.message));
}

function broken(error: unknown): Refusal {
  return {kind: 'refused', code: 'broken', message: asFault(error, 'INTERNAL').message};
}

async function giveBack(given: Lease | Busy | Refusal): Promise<void> {
  if (given.kind === 'accepted') await given[Symbol.asyncDispose]();
}

function peerFailed(node: NodeId, what: string, cause: unknown): Fault {
  if (cause instanceof Fault && cause.code === 'PEER_FAILED') return cause;
  return new Fault('PEER_FAILED', `node ${shortNode(node)} ${what}`, {cause, details: {node}});
}
