import type {DecisionFacts} from './decide.ts';
import type {FaultCode} from './fault.ts';
import type {Digest, NodeId, RequestId} from './ids.ts';
import type {PolicySource} from './policy.ts';
import type {Ranked} from './rank.ts';
import type {BusyReason, Endpoint, RefusalCode} from './work.ts';

/** How a request ended; exactly one of these (law 10). */
export type Outcome = 'finished' | 'failed' | 'refused' | 'cancelled' | 'interrupted';

/** What llama-server counted, read in passing. */
export interface Usage {
  readonly promptTokens: number | undefined;
  /** Of them, found in the cache. */
  readonly cachedTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly prefillTokensPerSecond: number | undefined;
  readonly decodeTokensPerSecond: number | undefined;
}

/** A request at its beginning, as far as it may be kept: never what it says. */
export interface Arrival {
  readonly kind: 'arrived';
  /** `entry`: a client's, at this gateway. `worker`: a peer's, which asked this node. */
  readonly role: 'entry' | 'worker';
  /** The name as asked; a worker is asked for digests only. */
  readonly model: string;
  readonly endpoint: Endpoint;
  /** As the request itself asked for; what holds follows in `planned`. */
  readonly policy: string;
  readonly bodyBytes: number;
  /** Name of the application's key. */
  readonly caller: string | undefined;
  /** The asking node; undefined at the entry. */
  readonly from: NodeId | undefined;
}

/** What happened to a request, in the order in which it happened. */
export type RequestEvent =
  | Arrival
  /** What the name stands for, and the policy that holds after all who may wish one. */
  | {readonly kind: 'planned'; readonly model: string; readonly policy: string; readonly policyFrom: PolicySource}
  | {readonly kind: 'decided'; readonly facts: DecisionFacts; readonly ranked: readonly Ranked[]}
  | {
      readonly kind: 'offered';
      readonly attempt: number;
      readonly node: NodeId;
      readonly nodeName: string;
      readonly force: boolean;
      /** How long it would take until the first output, as this node thought. */
      readonly estimateMs: number;
    }
  /** Every node that could run it is busy, and it waits for its turn among this node's clients. */
  | {readonly kind: 'queued'; readonly position: number; readonly waitMs: number}
  | {readonly kind: 'accepted'; readonly attempt: number; readonly digest: Digest}
  | {readonly kind: 'busy'; readonly attempt: number; readonly reason: BusyReason; readonly retryAfterMs: number}
  | {readonly kind: 'refused'; readonly attempt: number; readonly code: RefusalCode; readonly message: string}
  /** The attempt failed before there was any output, so that another node may be asked. */
  | {readonly kind: 'broke'; readonly attempt: number; readonly code: FaultCode; readonly message: string}
  /** No node could run it, or not soon enough, and its policy lets it leave: these hosted services are asked now. */
  | {readonly kind: 'leaving'; readonly reason: string; readonly services: readonly string[]}
  /** The first bytes of the answer: from here on it is never given to another node (law 3). */
  | {
      readonly kind: 'started';
      readonly attempt: number;
      readonly node: NodeId;
      readonly nodeName: string;
      readonly digest: Digest;
      /** The model's canonical name. */
      readonly model: string;
      /** llama-server's own. */
      readonly status: number;
    }
  | {
      readonly kind: 'ended';
      readonly outcome: Outcome;
      readonly code: FaultCode | undefined;
      readonly message: string | undefined;
      readonly usage: Usage | undefined;
    };

/** One line of `hearsay requests`. */
export interface RequestSummary {
  readonly id: RequestId;
  readonly role: Arrival['role'];
  /** Wall clock of this machine. */
  readonly atMs: number;
  /** Undefined while it runs. */
  readonly outcome: Outcome | undefined;
  readonly code: FaultCode | undefined;
  readonly message: string | undefined;
  readonly asked: string;
  readonly endpoint: Endpoint;
  readonly policy: string;
  readonly policyFrom: PolicySource | undefined;
  readonly bodyBytes: number;
  readonly caller: string | undefined;
  readonly from: NodeId | undefined;
  /** What really ran, as soon as there is output. */
  readonly node: NodeId | undefined;
  readonly nodeName: string | undefined;
  readonly digest: Digest | undefined;
  readonly model: string | undefined;
  readonly status: number | undefined;
  readonly attempts: number;
  readonly estimateMs: number | undefined;
  /** Its place when it began to wait for its turn; undefined once it has been offered to a node. */
  readonly position?: number | undefined;
  readonly firstByteMs: number | undefined;
  readonly totalMs: number | undefined;
  readonly usage: Usage | undefined;
  /** Grows with every change of any request: ask for what is newer than the last one seen. */
  readonly change: number;
}

export interface JournaledRequest {
  readonly summary: RequestSummary;
  readonly events: readonly JournaledEvent[];
}

/** With the milliseconds since the request came. */
export interface JournaledEvent {
  readonly sinceMs: number;
  readonly event: RequestEvent;
}

/** Which requests to list; newest first unless `after` is given. */
export interface JournalQuery {
  readonly countMax: number;
  /** Only those that changed after this change, oldest change first. */
  readonly after: number | undefined;
}

/** The durable record of what happened to requests at this node. Prompts and answers are never in it. */
export interface Journal extends AsyncDisposable {
  /** Takes the event at once and writes it within a second. Never throws: a full disk must not stop the answers. */
  note(request: RequestId, event: RequestEvent): void;
  requests(query: JournalQuery): readonly RequestSummary[];
  /** By its id, or by the beginning of it where that is unique. */
  find(id: string): JournaledRequest | undefined;
}
