import type {Caller} from './caller.ts';
import type {Capability} from './model.ts';
import type {Digest, NodeId, RequestId} from './ids.ts';
import type {Policy} from './policy.ts';
import type {SignedRecord} from './record.ts';

/** Paths of llama-server that a request may be sent to. Also the list of what may cross the mesh. */
export const endpoints = [
  '/v1/chat/completions',
  '/v1/chat/completions/input_tokens',
  '/v1/completions',
  '/v1/responses',
  '/v1/responses/input_tokens',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/embeddings',
  '/v1/rerank',
  '/v1/audio/transcriptions',
  '/completion',
  '/infill',
  '/embedding',
  '/apply-template',
  '/tokenize',
  '/detokenize',
  '/props',
  '/slots',
  '/lora-adapters',
] as const;
export type Endpoint = (typeof endpoints)[number];

/** Endpoints that are only looked at: llama-server wants a GET there, and no body. */
const lookedAt: ReadonlySet<Endpoint> = new Set(['/props', '/slots', '/lora-adapters']);

/** Answered beside whatever the model is writing: they use no slot of llama-server. */
const slotless: ReadonlySet<Endpoint> = new Set([
  ...lookedAt,
  '/tokenize',
  '/detokenize',
  '/apply-template',
  '/v1/chat/completions/input_tokens',
  '/v1/responses/input_tokens',
  '/v1/messages/count_tokens',
]);

/** Whether a request takes one of the slots that the engine lends. */
export function needsSlot(endpoint: Endpoint): boolean {
  return !slotless.has(endpoint);
}

/** How llama-server is asked; between nodes every request is a POST. */
export function methodOf(endpoint: Endpoint): 'GET' | 'POST' {
  return lookedAt.has(endpoint) ? 'GET' : 'POST';
}

/** What a worker is asked to take. Travels in the stream header; the body follows only after `accept`. */
export interface WorkRequest {
  readonly request: RequestId;
  /** 1 for the first try; a worker refuses an attempt that is not newer than the newest it has seen. */
  readonly attempt: number;
  /** 0 where the client's request entered, 1 after crossing the mesh. More is refused (law 1). */
  readonly hop: number;
  /** Models that may run it, in order of preference. */
  readonly digests: readonly Digest[];
  readonly endpoint: Endpoint;
  readonly needs: readonly Capability[];
  readonly policy: Policy;
  /** Milliseconds that are left for the whole request; undefined when the client set no limit. */
  readonly deadlineMs: number | undefined;
  readonly bodyBytes: number;
  /** What will be run, for a worker that is far away: a short one travels with the offer and saves a round trip. */
  readonly body?: Uint8Array | undefined;
  /** Of the body; JSON unless given. */
  readonly contentType?: string | undefined;
  /** How long the asking node thinks it will wait for a slot. */
  readonly waitEstimateMs: number;
  /** Take it even if it must wait for a slot: sent after every candidate has answered `busy`. */
  readonly force: boolean;
  /** Nothing to run: asks only whether the model is or will be loaded there, before the asker loads it itself. */
  readonly claim?: boolean | undefined;
  /** W3C trace context, when the client sent one. */
  readonly traceparent: string | undefined;
  /** The application, with the rights that the entry node has checked; the worker checks again. */
  readonly caller?: Caller | undefined;
  /** How long the model stays loaded afterwards, as the client asked; Infinity: for ever. The owner's limits win. */
  readonly keepAliveMs?: number | undefined;
  /** Context that the client would like, in tokens (Ollama's `num_ctx`). */
  readonly contextTokens?: number | undefined;
  /** Hashes of the ends of its messages, oldest first, for the worker's sketch; absent when nobody has counted them. */
  readonly prefix?: readonly number[];
}

export type BusyReason = 'slots' | 'memory' | 'loading' | 'draining';

/** Not now: another node may be better. Carries a fresh record, so that the asker ranks again with true facts. */
export interface Busy {
  readonly kind: 'busy';
  readonly reason: BusyReason;
  readonly record: SignedRecord | undefined;
  /** When asking again makes sense. */
  readonly retryAfterMs: number;
}

export type RefusalCode =
  | 'auth'
  | 'hop'
  | 'digest'
  | 'stale-attempt'
  | 'policy'
  | 'capability'
  | 'broken'
  | 'memory' // the model does not fit there, not even alone
  | 'too-large'; // the request

/** Never, for this request. */
export interface Refusal {
  readonly kind: 'refused';
  readonly code: RefusalCode;
  /** For people: why, without secrets. */
  readonly message: string;
}

/** Head and bytes of an answer. The body throws a fault when it was cut; a clean end means that it is whole. */
export interface WorkResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
  /** The worker's newest record, known only after the body ended well. */
  readonly record: () => SignedRecord | undefined;
}

/** A slot held until disposed. Disposing is idempotent and ends a run that is still going. */
export interface Lease extends AsyncDisposable {
  readonly kind: 'accepted';
  /** What will really run. */
  readonly digest: Digest;
  /** The worker's load sequence with this slot taken: a record from there with as much or more knows of the lease. */
  readonly loadSeq?: number | undefined;
  /**
   * Sends the body and resolves with the head of the answer; call it once. Waits inside for a queue place and a cold
   * engine. Aborting the signal ends the run on the worker within 100 ms.
   */
  run(body: Uint8Array, signal: AbortSignal): Promise<WorkResponse>;
}

/** Whatever can take a request: this machine's engines, a peer over the mesh, a hosted provider. */
export interface Worker {
  readonly node: NodeId;
  /** Asks for a slot. Answers from the owner's true state; resolves quickly, never queues silently. */
  offer(request: WorkRequest, signal: AbortSignal): Promise<Lease | Busy | Refusal>;
}
