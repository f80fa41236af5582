import type {Digest, NodeId} from './ids.ts';
import type {ModelFacts} from './model.ts';

/** Orders the records of one node. `boot` grows at every start of the daemon, `sequence` within one. */
export interface Stamp {
  readonly boot: number;
  readonly sequence: number;
}

/** States of an engine that others can make use of; every other state is "stored". */
export type EngineReadiness = 'ready' | 'loading';

/** One engine as its owner gossips it. */
export interface EngineBeat {
  readonly digest: Digest;
  readonly readiness: EngineReadiness;
  readonly slots: number;
  readonly busy: number;
  readonly queued: number;
  /** The owner's own estimate of the wait for a slot. */
  readonly waitMs: number;
  /** Context of one slot, in tokens. */
  readonly context: number;
  /** Whole seconds since it became ready, and until it will be unloaded; -1 for "not unloaded". */
  readonly ageSeconds: number;
  readonly untilSeconds: number;
  readonly sizeBytes: number;
}

/** Memory that models can use: devices where there are any, else system RAM (S30). 0 total means unknown (S28). */
export interface MemoryFacts {
  readonly kind: 'device' | 'ram';
  readonly totalBytes: number;
  readonly freeBytes: number;
}

export interface NodeFlags {
  readonly draining: boolean;
  readonly paused: boolean;
  /** Charge of its battery, 0…1, while it runs on it. */
  readonly batteryShare?: number | undefined;
  /** It makes itself slower so as not to become hotter. */
  readonly isHot?: boolean | undefined;
}

/** A node's short-lived statement about itself. At most `beatBytesMax` on the wire. */
export interface Beat extends Stamp {
  readonly kind: 'beat';
  readonly node: NodeId;
  /** What people call the node; not unique and never used to decide. */
  readonly name: string;
  readonly version: string;
  /** Lifetime from receipt, on the receiver's monotonic clock. */
  readonly ttlMs: number;
  /** Grows with every change of load, so that an asker knows whether its own offers are already counted. */
  readonly loadSeq: number;
  /** Digest of the inventory that belongs to this beat: 16 hex digits. */
  readonly inventory: string;
  readonly engines: readonly EngineBeat[];
  readonly memory: MemoryFacts;
  readonly flags: NodeFlags;
}

/** Says that the node goes away now. */
export interface Leave extends Stamp {
  readonly kind: 'leave';
  readonly node: NodeId;
}

/**
 * What a node's engines have read lately, as hashes of the ends of messages. Separate from the beat: it is larger, and
 * may be older.
 */
export interface Sketch extends Stamp {
  readonly kind: 'sketch';
  readonly node: NodeId;
  readonly prompts: ReadonlyMap<Digest, ReadonlySet<number>>;
}

export type NodeRecord = Beat | Leave | Sketch;

/** How fast a machine is by its kind or by a short test: good enough until its models have been measured. */
export interface HardwareFacts {
  /** Of the memory that holds the weights. */
  readonly memoryBytesPerSecond: number;
  /** Of the arithmetic that reads prompts. */
  readonly operationsPerSecond: number;
  readonly diskBytesPerSecond: number;
}

/** Every model that a node stores and has proven. Fetched by stream when the digest in the beat changes. */
export interface Inventory {
  readonly models: readonly ModelFacts[];
  /** Most context that a slot gets there, in tokens; absent when it is not told. */
  readonly contextMax?: number;
  /** Absent when the node knows nothing of its own speed. */
  readonly hardware?: HardwareFacts;
}

/** A record as it travels: the payload is relayed byte for byte, so that fields of a newer version survive. */
export interface SignedRecord {
  readonly node: NodeId;
  readonly payload: Uint8Array;
  /** ed25519 over `recordContext` and the payload, by the key that the node id names. */
  readonly signature: Uint8Array;
}

/** True when `a` was made after `b`. Both must be of the same node; no clock is compared (law 5). */
export function isNewer(a: Stamp, b: Stamp): boolean {
  return a.boot > b.boot || (a.boot === b.boot && a.sequence > b.sequence);
}
