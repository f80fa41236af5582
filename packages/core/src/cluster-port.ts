import type {ControlAnswer} from './control.ts';
import type {Digest, NodeId, RequestId} from './ids.ts';
import type {Caller} from './caller.ts';
import type {JournalQuery, RequestSummary} from './journal-port.ts';
import type {Capability, ModelPreset} from './model.ts';
import type {OperatorChange, OperatorState} from './operator.ts';
import type {Policy} from './policy.ts';
import type {RouteQuestion, RouteReport, WhyReport} from './why.ts';
import type {RoutingHints} from './routing-hints.ts';
import type {Endpoint} from './work.ts';

/** A client's request as the gateway hands it on: parsed, bounded, and always streamed upstream. */
export interface ClientRequest {
  readonly id: RequestId;
  /** The name as asked; empty when the client named none. */
  readonly model: string;
  readonly endpoint: Endpoint;
  readonly needs: readonly Capability[];
  /** What the request itself asks for. */
  readonly policy: Policy;
  /** Where it says so; when absent, only a policy other than automatic counts as asked for. */
  readonly policyFrom?: 'header' | 'provider' | 'context' | undefined;
  /** The application, when a key was given. */
  readonly caller?: Caller | undefined;
  /** Requests of one client wait in one line; absent: the key's name, else all are one client. */
  readonly client?: string | undefined;
  /** With `stream: true` where the endpoint can, so that a cancel frees the slot at once (facts: llama-server §2). */
  readonly body: Uint8Array;
  /** Of the body; JSON unless given: multipart forms go through as they are (C66). */
  readonly contentType?: string | undefined;
  readonly traceparent: string | undefined;
  /** How long the model stays loaded afterwards, when the client says so; see `parseKeepAlive`. */
  readonly keepAliveMs?: number | undefined;
  /** Context that the client would like, in tokens; a wish, and no condition. */
  readonly contextTokens?: number | undefined;
  /** What helps to choose a node; absent: it is chosen without. */
  readonly hints?: RoutingHints;
}

/** What ran, for response headers (S81). */
export interface RunFacts {
  readonly node: NodeId;
  readonly nodeName: string;
  readonly digest: Digest;
  /** The model's canonical name. */
  readonly model: string;
  /** Which attempt answered; more than 1 means that it was reassigned. */
  readonly attempts: number;
  readonly policy: string;
  /** Why this node, in a few words. */
  readonly reason: string;
}

/**
 * An answer whose first bytes have arrived. The status is llama-server's own; an error body is passed on unchanged
 * (R24). The body throws `INTERRUPTED` when the run broke after output had begun. Return or break from it to end the
 * run.
 */
export interface Answer {
  readonly run: RunFacts;
  readonly status: number;
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
}

/** One model for people and clients, over the whole mesh. */
export interface ModelReport {
  /** Canonical name; what clients send back. */
  readonly name: string;
  readonly names: readonly string[];
  readonly digest: Digest;
  readonly sizeBytes: number;
  readonly architecture: string;
  readonly quant: string;
  readonly parameters: number;
  readonly contextMax: number;
  readonly capabilities: readonly Capability[];
  /** What stores add to it under some of its names. */
  readonly presets?: readonly ModelPreset[];
  readonly status: 'loaded' | 'loading' | 'unloaded';
  /** Nodes that store it, this one first. */
  readonly nodes: readonly {readonly id: NodeId; readonly name: string; readonly local: boolean}[];
  /** Another model in the mesh has the same name and other bytes (law 6). */
  readonly conflict: boolean;
  readonly demo: boolean;
  /** Why it cannot be used; only for models of this machine. */
  readonly problem: string | undefined;
  /** 0…1 while this machine hashes it; until then only requests that enter here can use it. */
  readonly hashed: number | undefined;
}

/** One engine for people, over the whole mesh. */
export interface EngineReport {
  readonly name: string;
  readonly digest: Digest;
  readonly sizeBytes: number;
  readonly processor: string;
  readonly context: number;
  /** `ready`, `loading`, and on this machine also `stopping`, `backing off`, `broken`. */
  readonly state: string;
  readonly startedSecondsAgo: number | undefined;
  /** `local`, or `host:port` of the peer (S52). */
  readonly node: string;
  readonly nodeId: NodeId;
  readonly nodeName: string;
  /** `draining` and `paused` nodes take no new requests. */
  readonly nodeState?: 'alive' | 'draining' | 'paused' | undefined;
  /** Seconds until it is unloaded; undefined: not before somebody stops it. */
  readonly untilSeconds: number | undefined;
  readonly slots: number;
  readonly busy: number;
  readonly queued: number;
  readonly failure: string | undefined;
  /** While it loads: share of the file that is read (0…1), where that is known, and the seconds that are left. */
  readonly loadedShare?: number | undefined;
  readonly loadingSecondsLeft?: number | undefined;
}

export interface NodeReport {
  readonly id: NodeId;
  readonly name: string;
  readonly local: boolean;
  /** `host:port` of its mesh listener. */
  readonly address: string;
  readonly state: 'alive' | 'seen' | 'unreachable' | 'draining' | 'paused';
  /** For `seen`: why it is not admitted and what would admit it. */
  readonly note: string | undefined;
  readonly path: 'self' | 'direct' | 'relayed';
  /** Name of the node that passes it on, when relayed. */
  readonly relayedBy?: string | undefined;
  readonly roundTripMs: number | undefined;
  readonly version: string;
  readonly memoryKind: 'device' | 'ram';
  readonly memoryTotalBytes: number;
  readonly memoryFreeBytes: number;
  /** Models it stores. */
  readonly models: number;
  readonly loaded: readonly string[];
  readonly busy: number;
  readonly slots: number;
}

export interface StatusReport {
  readonly id: NodeId;
  readonly name: string;
  readonly version: string;
  readonly mesh: string;
  readonly meshAddresses: readonly string[];
  readonly gateway: string;
  readonly engine: string;
  readonly processId: number;
  readonly uptimeSeconds: number;
  readonly peers: number;
  readonly models: number;
  readonly loaded: number;
  readonly inFlight: number;
  /** `both`, `use` or `serve`: what it does for others, and they for it. */
  readonly role?: string | undefined;
  /** `serving`, `draining` or `paused`. */
  readonly state: string;
  /** Policies that the owner has set for models, workloads and keys. */
  readonly policies: number;
  readonly dataFolder: string;
}

/** A wish about a model's engines, by name. Without a node: of whichever nodes it concerns. */
export type ControlCommand = {readonly model: string; readonly node: string | undefined} & (
  | {
      readonly kind: 'load';
      readonly context: number | undefined;
      readonly slots: number | undefined;
      readonly keep: boolean;
      /** On so many nodes, the best ones; absent: on one. */
      readonly copies?: number | undefined;
    }
  | {readonly kind: 'stop'}
  | {readonly kind: 'show'}
  | {readonly kind: 'logs'; readonly after: number}
);

/** What one node answered to such a wish. */
export interface ControlOutcome {
  readonly node: NodeId;
  readonly nodeName: string;
  readonly local: boolean;
  readonly digest: Digest;
  readonly answer: ControlAnswer;
}

/** Where a waiting request stands. */
export interface Place {
  /** 1: the next. */
  readonly position: number;
  readonly waitMs: number;
}

/** One node's part in the mesh, as its gateway uses it. */
export interface Cluster extends AsyncDisposable {
  /**
   * Runs the request on the node that ranks best and resolves when the first bytes of its answer are here. Throws a
   * fault before that: MODEL_NOT_FOUND, NO_CANDIDATE, OVERLOADED, ENGINE_FAILED, PEER_FAILED, CANCELLED. May reassign
   * until it resolves, never after (law 3).
   */
  dispatch(request: ClientRequest, signal: AbortSignal): Promise<Answer>;
  models(): readonly ModelReport[];
  engines(): readonly EngineReport[];
  nodes(): readonly NodeReport[];
  inFlight(): number;
  /** Where a request of this node's clients stands while every node that could run it is busy; undefined: it waits for nobody. */
  waiting(request: RequestId): Place | undefined;
  /** Stops every engine of the model, on whichever node; false when none ran. */
  stop(model: string): Promise<boolean>;
  /** What this node has seen of requests: those of its clients and those of peers that it served. */
  requests(query: JournalQuery): readonly RequestSummary[];
  /** Everything about one of them; by the beginning of its id where that is unique. */
  why(id: string): WhyReport | undefined;
  /** Where a request would go, without running it. Throws as `dispatch` for a model that nobody has. */
  route(question: RouteQuestion): RouteReport;
  /** Takes nothing new here, and resolves when nothing runs here any more, or when the signal aborts. */
  retire(signal: AbortSignal): Promise<void>;
  /** What the owner has said about this node. */
  operator(): OperatorState;
  /** Changes it; resolves when the change is on disk and holds. */
  operate(change: OperatorChange): Promise<OperatorState>;
  /**
   * Loads, stops, shows or reads the log of a model's engines, here or on other nodes. Throws MODEL_NOT_FOUND,
   * NODE_NOT_FOUND or NO_CANDIDATE; what a node said against it is an outcome.
   */
  control(command: ControlCommand, signal: AbortSignal): Promise<readonly ControlOutcome[]>;
}
