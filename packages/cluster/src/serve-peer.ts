import type {LoadClaims} from './load-claims.ts';
import type {Busy, Lease, NodeId, Refusal, RequestId, SignedRecord, Worker, WorkRequest} from '@hearsay/core';

/** Requests whose attempts are remembered, to refuse a late one: far more than run at once. */
const fencedRequestsMax = 10_000;

/** Askers of whom it is remembered what they were told last: more than one mesh has. */
const askersMax = 1000;

export type ServePeer = (request: WorkRequest, from: NodeId, signal: AbortSignal) => Promise<Lease | Busy | Refusal>;

/** What this node tells of itself with its answers. */
export interface Telling {
  /** Its newest record, signed. */
  readonly fresh: () => Promise<SignedRecord>;
  /** One that says the same of what a node is chosen by. */
  readonly recent: () => Promise<SignedRecord>;
  /** As a record of this moment would have it. */
  readonly loadSeq: () => number;
}

/**
 * Answers the offers of peers. It runs a request here or not at all, so that a request crosses the mesh at most once
 * (law 1), and refuses an attempt that is not newer than the newest it has seen, so that a request which was given to
 * somebody else meanwhile is not started late (law 2).
 */
export function servePeers(local: Worker, telling: Telling, claims?: Pick<LoadClaims, 'judge'>): ServePeer {
  const newestAttempt = new Map<RequestId, number>();
  const told = new Map<NodeId, SignedRecord>();

  function isStale({request, attempt}: WorkRequest): boolean {
    if (attempt <= (newestAttempt.get(request) ?? 0)) return true;
    newestAttempt.delete(request); // moves it to the end: the oldest entry is dropped first
    newestAttempt.set(request, attempt);
    const [oldest] = newestAttempt.keys();
    if (newestAttempt.size > fencedRequestsMax && oldest !== undefined) newestAttempt.delete(oldest);
    return false;
  }

  /** For that asker with the end of an answer; undefined when it has had it with an earlier one. */
  async function news(from: NodeId): Promise<SignedRecord | undefined> {
    const record = await telling.recent();
    if (told.get(from) === record) return undefined;
    told.delete(from);
    told.set(from, record);
    const [oldest] = told.keys();
    if (told.size > askersMax && oldest !== undefined) told.delete(oldest);
    return record;
  }

  return async (request, from, signal) => {
    if (request.hop !== 1) return {kind: 'refused', code: 'hop', message: `hop ${request.hop} is not 1`};
    const [wanted] = request.digests;
    if (request.claim === true && claims && wanted) return claims.judge(wanted, from);
    if (isStale(request)) return {kind: 'refused', code: 'stale-attempt', message: 'a newer attempt was seen'};

    const answer = await local.offer(request, signal);
    if (answer.kind === 'refused') return answer;
    if (answer.kind === 'busy') return {...answer, record: await telling.fresh()};
    return withNews(answer, telling.loadSeq(), async () => news(from));
  };
}

/**
 * The lease with what the asker needs to rank well without gossip: which records know of it, and after the run what is
 * new of this node. A record that is signed before the run would keep the engine waiting.
 */
function withNews(lease: Lease, loadSeq: number, news: () => Promise<SignedRecord | undefined>): Lease {
  return {
    ...lease,
    loadSeq,
    async run(body, signal) {
      const response = await lease.run(body, signal);
      let last: SignedRecord | undefined;
      async function* withLast(): AsyncGenerator<Uint8Array> {
        yield* response.body;
        await lease[Symbol.asyncDispose](); // the record tells of the slot as free
        last = await news();
      }
      return {...response, body: withLast(), record: () => last};
    },
  };
}
