import {Fault, shortNode} from '@hearsay/core';
import type {NodeId} from '@hearsay/core';
import type {Membership} from './membership.ts';

export interface SparingFacts {
  readonly self: NodeId;
  /** As a member. */
  readonly isConnected: (node: NodeId) => boolean;
  readonly wallMs: number;
}

/**
 * Throws BAD_REQUEST when this node is the only keeper that others have, as far as it can see. Members may be off for
 * a summer and still count; a keeper that cannot be seen may be gone for ever, so that it is not relied on.
 */
export function mustBeSpared(membership: Membership, {self, isConnected, wallMs}: SparingFacts): void {
  const standing = membership.ownStanding();
  if (standing.kind !== 'member' || standing.role !== 'keeper') return;
  const others = membership.state.members.filter(
    ({node, hasLeft, expiresAtMs}) =>
      node !== self && hasLeft !== true && !membership.isRevoked(node) && (expiresAtMs === 0 || wallMs <= expiresAtMs),
  );
  const keepers = others.filter(({role}) => role === 'keeper');
  const members = others.filter(({role}) => role !== 'keeper');
  if (members.length === 0 || keepers.some(({node}) => isConnected(node))) return;
  const names = (nodes: typeof others): string => nodes.map(({node, name}) => name || shortNode(node)).join(', ');
  const why =
    keepers.length === 0
      ? 'this node is the only keeper: without it'
      : `no other keeper is connected (${names(keepers)} may be gone): without this node`;
  const todo = 'Make another keeper first (hearsay invite --keeper), or leave all the same: hearsay leave --force';
  throw new Fault('BAD_REQUEST', `${why} ${names(members)} can let nobody in, and their passes end. ${todo}`);
}
