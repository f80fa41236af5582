import type {InviteReport, MemberReport, MeshReport, NodeId} from '@hearsay/core';
import {isNodeId} from '@hearsay/core';
import {z} from 'zod';

/** What the daemon says about membership, as the command line reads it. */

const nodeId = z.custom<NodeId>(isNodeId);
const role = z.enum(['member', 'keeper']);

const member: z.ZodType<MemberReport> = z.object({
  id: nodeId,
  name: z.string(),
  role,
  local: z.boolean(),
  connected: z.boolean(),
  state: z.enum(['member', 'left', 'revoked', 'expired']),
  expiresSeconds: absent(z.number()),
});

export const inviteSchema: z.ZodType<InviteReport> = z.object({
  id: z.string(),
  role,
  expiresSeconds: z.number(),
  code: absent(z.string()),
});

export const meshSchema: z.ZodType<MeshReport> = z.object({
  mode: z.enum(['lan', 'members']),
  mesh: z.string(),
  meshId: absent(nodeId),
  role: absent(role),
  relay: z.boolean(),
  relays: z.array(nodeId),
  openTo: z.array(z.string()),
  members: z.array(member),
  invites: z.array(inviteSchema),
  networks: z.array(
    z.object({
      interface: z.string(),
      kind: z.enum(['lan', 'overlay', 'virtual', 'subnet']),
      subnets: z.array(z.string()),
      gateway: absent(z.string()),
      trusted: z.boolean(),
      present: z.boolean(),
    }),
  ),
  warnings: z.array(z.string()),
});

export const revokedSchema: z.ZodType<{readonly revoked: string}> = z.object({revoked: z.string()});

function absent<T>(schema: z.ZodType<T>) {
  return schema.nullish().transform(value => value ?? undefined);
}
