import type {LoadClaims} from './load-claims.ts';
import type {Busy, Lease, NodeId, Refusal, RequestId, SignedRecord, Worker, WorkRequest} from '@hearsay/core';

/** Requests whose attempts are remembered, to refuse a late one: far more than run at once. */
const fencedRequestsMax = 10_000;

export type ServePeer = (request: WorkRequest, from: NodeId, signal: AbortSignal) => Promise<Lease | Busy | Refusal>;

/**
 * Answers the offers of peers. It runs a request here or not at all, so that a request crosses the mesh at most once
 * (law 1), and refuses an attempt that is not newer than the newest it has seen, so that a request which was given to
 * somebody else meanwhile is not started late (law 2).
 */
export function servePeers(
  local: Worker,
  fresh: () => Promise<SignedRecord>,
  claims?: Pick<LoadClaims, 'judge'>,
): ServePeer {
  const newestAttempt = new Map<RequestId, number>();

  function isStale({request, attempt}: WorkRequest): boolean {
    if (attempt <= (newestAttempt.get(request) ?? 0)) return true;
    newestAttempt.delete(request); // moves it to the end: the oldest entry is dropped first
    newestAttempt.set(request, attempt);
    const [oldest] = newestAttempt.keys();
    if (newestAttempt.size > fencedRequestsMax && oldest !== undefined) newestAttempt.delete(oldest);
    return false;
  }

  return async (request, from, signal) => {
    if (request.hop !== 1) return {kind: 'refused', code: 'hop', message: `hop ${request.hop} is not 1`};
    const [wanted] = request.digests;
    if (request.claim === true && claims && wanted) return claims.judge(wanted, from);
    if (isStale(request)) return {kind: 'refused', code: 'stale-attempt', message: 'a newer attempt was seen'};

    const answer = await local.offer(request, signal);
    if (answer.kind === 'refused') return answer;
    if (answer.kind === 'busy') return {...answer, record: await fresh()};
    try {
      return withRecords(answer, await fresh(), fresh);
    } catch (error) {
      await answer[Symbol.asyncDispose]();
      throw error;
    }
  };
}

/** The lease with this node's load after taking it, and again after the run: the asker needs no gossip to rank well. */
function withRecords(lease: Lease, record: SignedRecord, fresh: () => Promise<SignedRecord>): Lease {
  return {
    ...lease,
    record,
    async run(body, signal) {
      const response = await lease.run(body, signal);
      let last: SignedRecord | undefined;
      async function* withLast(): AsyncGenerator<Uint8Array> {
        yield* response.body;
        await lease[Symbol.asyncDispose](); // the record tells of the slot as free
        last = await fresh();
      }
      return {...response, body: withLast(), record: () => last};
    },
  };
}
