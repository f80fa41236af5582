import type {NodeId} from './ids.ts';
import type {Role} from './membership.ts';

/** Whether a node runs requests for others, asks others to run its own, or both. */
export type MeshRole = 'both' | 'use' | 'serve';

export interface MemberReport {
  readonly id: NodeId;
  readonly name: string;
  readonly role: Role;
  readonly local: boolean;
  readonly connected: boolean;
  /** `left`: it has said so, and may come back with the pass that it had. */
  readonly state: 'member' | 'left' | 'revoked' | 'expired';
  /** Of its pass as last seen; undefined for the founder. */
  readonly expiresSeconds: number | undefined;
}

export interface InviteReport {
  /** What people name it by, to revoke it. */
  readonly id: string;
  readonly role: Role;
  readonly expiresSeconds: number;
  /** Only right after it was made; afterwards only the inviter's hash of it is left. */
  readonly code: string | undefined;
}

export interface NetworkReport {
  readonly interface: string;
  readonly kind: 'lan' | 'overlay' | 'virtual' | 'subnet';
  readonly subnets: readonly string[];
  readonly gateway: string | undefined;
  readonly trusted: boolean;
  /** False for one that is trusted and not here now. */
  readonly present: boolean;
}

/** How this node stands to others, for people. */
export interface MeshReport {
  readonly mode: 'lan' | 'members';
  readonly mesh: string;
  /** Of a closed mesh: the node id of its founder. */
  readonly meshId: NodeId | undefined;
  readonly role: Role | undefined;
  readonly relay: boolean;
  /** Relays on which this node can be reached now. */
  readonly relays: readonly NodeId[];
  /** Subnets whose machines are admitted. */
  readonly openTo: readonly string[];
  readonly members: readonly MemberReport[];
  readonly invites: readonly InviteReport[];
  readonly networks: readonly NetworkReport[];
  /** What somebody should look at: a copied key, a pass about to end, a network that is not trusted. */
  readonly warnings: readonly string[];
}

export interface InviteWish {
  readonly role: Role;
  readonly lifeMs: number;
}

/**
 * Who may be in the mesh, as people change it. All faults are BAD_REQUEST (not possible as things stand) or those of
 * talking to a peer.
 */
export interface MeshAdmin {
  report(): MeshReport;
  /** Makes a code that lets one node in, once. */
  invite(wish: InviteWish): Promise<InviteReport>;
  join(code: string, signal: AbortSignal): Promise<MeshReport>;
  /** Closes the mesh that is open to the LAN, and keeps who is there. */
  lock(signal: AbortSignal): Promise<MeshReport>;
  /** A member by name or id, or an open invite by its id. Returns what was revoked. */
  revoke(which: string): Promise<string>;
  /** Forgets the closed mesh and is open to the LAN again. */
  leave(options?: {readonly force: boolean}): Promise<MeshReport>;
  /** An interface or a subnet. Returns what is trusted now. */
  trust(which: string): Promise<MeshReport>;
  forget(which: string): Promise<MeshReport>;
}
