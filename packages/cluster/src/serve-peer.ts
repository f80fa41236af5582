import type {Announcer} from './announcer.ts';
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
  /** One that says the same of what a node is chosen by, and does not count what has ended. */
  readonly recent: Announcer['recent'];
  /** From which load sequence on records count what has been taken right now. */
  readonly begun: Announcer['begun'];
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

  /** For that asker with the end of an answer; undefined when it was sent the same with an earlier one. */
  function news(from: NodeId, record: SignedRecord): SignedRecord | undefined {
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
    const begun = telling.begun();
    return withNews(answer, begun.loadSeq, {
      newest: async () => telling.recent(begun),
      unlessTold: record => news(from, record),
    });
  };
}

/**
 * The lease with what the asker needs to rank well without gossip: which records know of it, and after the run what is
 * new of this node. A record that is signed before the run would keep the engine waiting.
 */
function withNews(lease: Lease, loadSeq: number, {newest, unlessTold}: News): Lease {
  return {
    ...lease,
    loadSeq,
    async run(body, signal) {
      const response = await lease.run(body, signal);
      let last: SignedRecord | undefined;
      async function* withLast(): AsyncGenerator<Uint8Array> {
        yield* response.body;
        await lease[Symbol.asyncDispose](); // the record tells of the slot as free
        last = await newest();
      }
      return {...response, body: withLast(), record: () => last && unlessTold(last)}; // asked when it is being sent
    },
  };
}

interface News {
  readonly newest: () => Promise<SignedRecord>;
  readonly unlessTold: (record: SignedRecord) => SignedRecord | undefined;
}
