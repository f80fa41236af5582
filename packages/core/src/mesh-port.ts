import type {ControlAnswer, ControlRequest} from './control.ts';
import type {NodeId} from './ids.ts';
import type {SignedRecord} from './record.ts';
import type {Busy, Lease, Refusal, WorkRequest, Worker} from './work.ts';

/** `accept`: new, pass it on · `ignore`: old news · `reject`: malformed or not the signer's to say. */
export type Verdict = 'accept' | 'ignore' | 'reject';

/** A peer as this node is connected to it right now. */
export interface Link {
  readonly node: NodeId;
  /** False: seen, but given nothing; `refusal` says why and what would admit it. */
  readonly admitted: boolean;
  readonly refusal: string | undefined;
  /** `host:port` where the peer listens, as far as known; else where the connection comes from. */
  readonly address: string;
  readonly path: 'direct' | 'relayed';
  /** Who passes it on, when relayed. */
  readonly relay?: NodeId | undefined;
  readonly roundTripMs: number | undefined;
}

/** A record with the time it has spent so far on other nodes: it expires as if heard directly. */
export interface AgedRecord {
  readonly record: SignedRecord;
  readonly ageMs: number;
}

/** What the mesh asks of the node it serves. All are called only for admitted peers (law 8). */
export interface MeshHandlers {
  /** The signature is checked already and the sizes are bounded. */
  judge(aged: AgedRecord, from: NodeId): Verdict;
  /** The newest records held, this node's own first: for the exchange on connect and every 30 s. */
  newest(): readonly AgedRecord[];
  /** This node's inventory, encoded. */
  inventory(): Uint8Array;
  /** A wish about this node's engines. A node without it refuses them all. */
  readonly control?: (request: ControlRequest, from: NodeId) => Promise<ControlAnswer>;
  offer(request: WorkRequest, from: NodeId, signal: AbortSignal): Promise<Lease | Busy | Refusal>;
  /** After a link came, went, or changed its admission or path. `undefined` means gone. */
  linkChanged(node: NodeId, link: Link | undefined): void;
  /** What people call a node, as far as known. */
  nameOf?(node: NodeId): string | undefined;
  /**
   * This node has joined or left a closed mesh: what it heard before is not for those whom it meets now (law 8). Called
   * at that moment, and again when those are let go who may have been telling something.
   */
  moved?(): void;
}

/** Finds, admits and talks to other nodes. */
export interface Mesh extends AsyncDisposable {
  readonly self: NodeId;
  /** Multiaddrs where others can reach this node. */
  addresses(): readonly string[];
  /** Starts to find, admit and answer peers. Call once. */
  serve(handlers: MeshHandlers): Promise<void>;
  /** Signs this node's record, for gossip or to hand out with an answer. */
  sign(payload: Uint8Array): Promise<SignedRecord>;
  /**
   * Gives a signed record to every peer; nobody listening is not an error. One that was published or given to anybody
   * before may reach nobody.
   */
  publish(record: SignedRecord): Promise<void>;
  /** Fetches a peer's inventory. */
  inventory(peer: NodeId, signal: AbortSignal): Promise<Uint8Array>;
  /** The peer as a worker. Offers fail with PEER_FAILED when it cannot be reached. */
  worker(peer: NodeId): Worker;
  /** Tells a peer a wish about its engines. Throws PEER_FAILED when it cannot be reached or does not answer. */
  control(peer: NodeId, request: ControlRequest, signal: AbortSignal): Promise<ControlAnswer>;
  links(): readonly Link[];
}
