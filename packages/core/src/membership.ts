/** Who belongs to a closed mesh: signed statements, and the rules by which they count. */
import type {NodeId} from './ids.ts';
import {revocationsMax} from './limits.ts';

/** Put before a statement when it is signed, so that the signature means nothing anywhere else. */
export const statementContext: Uint8Array = new TextEncoder().encode('hearsay statement 1\n');

/** `keeper`: may also invite, renew and revoke. */
export type Role = 'member' | 'keeper';

/** Says that a node belongs to a mesh until then. A mesh has the node id of its founder. */
export interface Pass {
  readonly kind: 'pass';
  readonly mesh: NodeId;
  readonly node: NodeId;
  /** What people called the node when it joined. */
  readonly name: string;
  readonly role: Role;
  /** On the signer's wall clock; the grace below is for clocks that differ. */
  readonly expiresAtMs: number;
}

/** Says that a node does not belong to a mesh any more; final. */
export interface Revocation {
  readonly kind: 'revocation';
  readonly mesh: NodeId;
  readonly node: NodeId;
  readonly name: string;
}

export type Statement = Pass | Revocation;

/** A statement as it travels; the signature is by the key that `signer` names, over `statementContext` and payload. */
export interface SignedStatement {
  readonly signer: NodeId;
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
}

/** A statement whose signature has been checked. */
export interface Checked<Kind extends Statement = Statement> {
  readonly signer: NodeId;
  readonly statement: Kind;
}

/** From the node's own pass to one that the founder has signed: founder, keeper, keeper, member. */
export const chainMax: number = 3;

/** A node whose clock is an hour slow or fast is still believed. */
const clockGraceMs = 2 * 60 * 60_000;

export type Standing =
  | {readonly kind: 'member'; readonly role: Role; readonly expiresAtMs: number}
  | {readonly kind: 'stranger'; readonly code: 'none' | 'expired' | 'revoked' | 'forged'};

export interface StandingQuestion {
  readonly mesh: NodeId;
  readonly node: NodeId;
  /** The node's pass, that of its signer, and so on; empty for the founder. */
  readonly chain: readonly Checked[];
  readonly revoked: ReadonlySet<NodeId>;
  readonly wallMs: number;
}

/** Pure: whether a node is a member. Signatures have been checked before; everything else is checked here. */
export function judgeStanding({mesh, node, chain, revoked, wallMs}: StandingQuestion): Standing {
  if (node === mesh) return {kind: 'member', role: 'keeper', expiresAtMs: Infinity};
  if (revoked.has(node)) return {kind: 'stranger', code: 'revoked'};
  if (chain.length === 0) return {kind: 'stranger', code: 'none'};
  if (chain.length > chainMax) return {kind: 'stranger', code: 'forged'};
  let holder = node;
  let expiresAtMs = Infinity;
  let role: Role = 'member';
  for (const [index, {signer, statement}] of chain.entries()) {
    const isRight = statement.kind === 'pass' && statement.mesh === mesh && statement.node === holder;
    if (!isRight || (index > 0 && statement.role !== 'keeper')) return {kind: 'stranger', code: 'forged'};
    if (revoked.has(signer)) return {kind: 'stranger', code: 'revoked'};
    if (index === 0) role = statement.role;
    expiresAtMs = Math.min(expiresAtMs, statement.expiresAtMs);
    holder = signer;
  }
  if (holder !== mesh) return {kind: 'stranger', code: 'forged'};
  if (wallMs > expiresAtMs + clockGraceMs) return {kind: 'stranger', code: 'expired'};
  return {kind: 'member', role, expiresAtMs};
}

/**
 * Pure: whether a revocation counts. Its signer must once have been a keeper; that this has expired or been revoked
 * since does not undo it, so that a set of revocations only grows and all nodes come to the same one.
 */
export function isRevocation(revocation: Checked, chain: readonly Checked[], mesh: NodeId): boolean {
  const {signer, statement} = revocation;
  if (statement.kind !== 'revocation' || statement.mesh !== mesh || statement.node === mesh) return false;
  const standing = judgeStanding({mesh, node: signer, chain, revoked: new Set(), wallMs: -Infinity});
  return standing.kind === 'member' && standing.role === 'keeper';
}

/**
 * Pure: the revocations that are kept with a further one. A stolen keeper could fill the list so that nobody can revoke
 * it any more; so those of the founder always count, and the last of another keeper makes room. Undefined: no room.
 */
export function addRevocation<Revoked extends {readonly statement: Pick<SignedStatement, 'signer'>}>(
  kept: readonly Revoked[],
  added: Revoked,
  mesh: NodeId,
): readonly Revoked[] | undefined {
  if (kept.length < revocationsMax) return [...kept, added];
  const last = kept.findLastIndex(({statement}) => statement.signer !== mesh);
  return added.statement.signer === mesh && last >= 0 ? [...kept.toSpliced(last, 1), added] : undefined;
}

/** Pure: time to ask a keeper for a new pass, after a third of its life. */
export function shouldRenew(expiresAtMs: number, lifeMs: number, wallMs: number): boolean {
  return wallMs > expiresAtMs - (lifeMs * 2) / 3;
}
