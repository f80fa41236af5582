import type {MemberReport, NodeId} from '@hearsay/core';
import type {Membership} from './membership.ts';

export interface ReportFacts {
  readonly self: NodeId;
  readonly nodeName: string;
  readonly isConnected: (node: NodeId) => boolean;
  readonly wallMs: number;
}

/** Everybody who belongs to the closed mesh or did, this node first. */
export function memberReports(membership: Membership, facts: ReportFacts): readonly MemberReport[] {
  const {mesh, chain} = membership;
  if (mesh === undefined) return [];
  const revoked = membership.revoked();
  const self: MemberReport = {
    id: facts.self,
    name: facts.nodeName,
    role: mesh === facts.self ? 'keeper' : (membership.roleOf(chain) ?? 'member'),
    local: true,
    connected: true,
    state: 'member',
    expiresSeconds: secondsUntil(membership.expiresAtMs(), facts.wallMs),
  };
  const others = membership.state.members
    .filter(({node}) => node !== facts.self && !revoked.has(node))
    .map(({node, name, role, expiresAtMs, hasLeft}): MemberReport => ({
      id: node,
      name,
      role,
      local: false,
      connected: facts.isConnected(node),
      state: hasLeft === true ? 'left' : expiresAtMs > 0 && facts.wallMs > expiresAtMs ? 'expired' : 'member',
      expiresSeconds: expiresAtMs > 0 ? secondsUntil(expiresAtMs, facts.wallMs) : undefined,
    }));
  const gone = [...revoked].map(([id, name]): MemberReport => ({
    id,
    name,
    role: 'member',
    local: false,
    connected: false,
    state: 'revoked',
    expiresSeconds: undefined,
  }));
  return [self, ...others, ...gone];
}

function secondsUntil(atMs: number, wallMs: number): number | undefined {
  return atMs === Infinity ? undefined : Math.round((atMs - wallMs) / 1000);
}
