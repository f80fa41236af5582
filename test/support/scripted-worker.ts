import type {Busy, Lease, NodeId, Refusal, Worker, WorkRequest, WorkResponse} from '@hearsay/core';
import {digest} from './builders.ts';

/** What a scripted worker does with its next offer. A function is called with the offer. */
export type Play = Lease | Busy | Refusal | Error | ((request: WorkRequest) => Promise<Lease | Busy | Refusal>);

/** A worker that plays its script, one entry an offer, the last one for ever; it keeps what it was offered. */
export function scriptedWorker(node: NodeId, ...script: readonly Play[]): Worker & {readonly offers: WorkRequest[]} {
  const offers: WorkRequest[] = [];
  return {
    node,
    offers,
    async offer(request) {
      const play = script[Math.min(offers.length, script.length - 1)];
      offers.push(request);
      if (play instanceof Error) throw play;
      if (typeof play === 'function') return play(request);
      if (!play) throw new Error('an empty script');
      return play;
    },
  };
}

export interface ScriptedLease extends Lease {
  /** How often it was disposed. */
  readonly disposals: () => number;
}

/** A lease whose answer is these pieces; an Error among them breaks it off there; `null` waits for the abort. */
export function scriptedLease(
  pieces: readonly (string | Error | null)[],
  head: Partial<Pick<WorkResponse, 'status' | 'contentType'>> = {},
): ScriptedLease {
  let disposals = 0;
  return {
    kind: 'accepted',
    digest: digest('a'),
    disposals: () => disposals,
    async run(_body, signal) {
      async function* body(): AsyncGenerator<Uint8Array> {
        for (const piece of pieces) {
          if (piece instanceof Error) throw piece;
          if (piece === null) await aborted(signal);
          else yield Buffer.from(piece);
        }
      }
      return {status: 200, contentType: 'text/event-stream', record: () => undefined, ...head, body: body()};
    },
    async [Symbol.asyncDispose]() {
      disposals += 1;
    },
  };
}

export const busy = (retryAfterMs: number): Busy => ({kind: 'busy', reason: 'slots', record: undefined, retryAfterMs});

async function aborted(signal: AbortSignal): Promise<never> {
  const {promise, reject} = Promise.withResolvers<never>();
  if (signal.aborted) throw signal.reason;
  signal.addEventListener('abort', () => reject(signal.reason), {once: true});
  return promise;
}
