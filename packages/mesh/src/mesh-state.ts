import {readFile, rename, rm, writeFile} from 'node:fs/promises';
import {Fault, hasCode, isNodeId, revocationsMax} from '@hearsay/core';
import type {ChainedStatement, NodeId, Role, SignedStatement, TrustedNetwork} from '@hearsay/core';
import {z} from 'zod';

/** An invite that has not been used: the code itself is only with the one who got it. */
export interface OpenInvite {
  readonly id: string;
  /** sha256 of the secret, so that this file opens no door. */
  readonly secretHash: string;
  readonly role: Role;
  readonly expiresAtMs: number;
  /** Who has used it: that node may ask again, as the answer may have been lost on the way. */
  readonly usedBy?: NodeId | undefined;
}

/** A member as last met. */
interface KnownMember {
  readonly node: NodeId;
  readonly name: string;
  readonly role: Role;
  /** 0 for the founder, whose membership has no end. */
  readonly expiresAtMs: number;
  /** It has said so; with its passes it may come back. */
  readonly hasLeft?: boolean | undefined;
}

/** What a node must still know after a restart: whom it trusts and what it belongs to. */
export interface MeshState {
  /** Undefined until the first network was seen. */
  readonly trusted: readonly TrustedNetwork[] | undefined;
  /** Undefined: open to the LAN. */
  readonly closed:
    | {
        readonly mesh: NodeId;
        readonly meshName: string;
        readonly chain: readonly SignedStatement[];
        /** Known to every member and to nobody else; undefined: it was closed before there were such secrets. */
        readonly secret?: Uint8Array | undefined;
      }
    | undefined;
  readonly revocations: readonly ChainedStatement[];
  readonly invites: readonly OpenInvite[];
  readonly members: readonly KnownMember[];
  /** Where members that everybody can reach were met: the way back into the mesh after a restart. */
  readonly contacts: readonly {readonly node: NodeId; readonly addresses: readonly string[]}[];
}

const emptyState: MeshState = {
  trusted: undefined,
  closed: undefined,
  revocations: [],
  invites: [],
  members: [],
  contacts: [],
};

/** A household hands out a few at a time. */
export const invitesMax = 64;
/** As many as a view holds nodes. */
export const membersMax = 1024;
/** Relays and inviters; one that answers is enough. */
export const contactsMax = 16;

const nodeId = z.custom<NodeId>(isNodeId);
const bytes = z.base64().transform(text => Uint8Array.from(Buffer.from(text, 'base64')));
const statement = z.object({signer: nodeId, payload: bytes, signature: bytes});
const role = z.enum(['member', 'keeper']);
const trusted = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('network'),
    subnets: z.array(z.string()),
    gateway: z.string().optional(),
    gatewayHardware: z.string().optional(),
  }),
  z.object({kind: z.literal('interface'), interface: z.string()}),
  z.object({kind: z.literal('subnet'), subnet: z.string()}),
]);
const schema = z.object({
  trusted: z
    .array(trusted)
    .transform(list =>
      list.map((one): TrustedNetwork =>
        one.kind === 'network'
          ? {kind: one.kind, subnets: one.subnets, gateway: one.gateway, gatewayHardware: one.gatewayHardware}
          : one,
      ),
    )
    .optional(),
  closed: z
    .object({mesh: nodeId, meshName: z.string(), chain: z.array(statement), secret: bytes.optional()})
    .optional(),
  revocations: z.array(z.object({statement, chain: z.array(statement)})).max(revocationsMax),
  invites: z
    .array(z.object({id: z.string(), secretHash: z.string(), role, expiresAtMs: z.number(), usedBy: nodeId.optional()}))
    .max(invitesMax),
  members: z
    .array(z.object({node: nodeId, name: z.string(), role, expiresAtMs: z.number(), hasLeft: z.boolean().optional()}))
    .max(membersMax),
  contacts: z.array(z.object({node: nodeId, addresses: z.array(z.string())})).max(contactsMax),
});

/** Throws BAD_CONFIG for a file that cannot be used: a closed mesh must not open because of a bad disk. */
export async function loadMeshState(file: string): Promise<MeshState> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    if (hasCode(cause, 'ENOENT')) return emptyState;
    throw new Fault('BAD_CONFIG', `cannot read whom this node trusts in ${file}; check its owner and mode`, {cause});
  }
  try {
    const state = schema.parse(JSON.parse(text));
    return {...state, trusted: state.trusted, closed: state.closed};
  } catch (cause) {
    const advice = 'restore it from a backup, or delete it to be open to the LAN again';
    throw new Fault('BAD_CONFIG', `what this node trusts, in ${file}, is damaged; ${advice}`, {cause});
  }
}

/** Readers see the old file or the new one, never half of it. */
export async function saveMeshState(file: string, state: MeshState): Promise<void> {
  const unfinished = `${file}.part`;
  const text = JSON.stringify(
    state,
    (_, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value),
    1,
  );
  try {
    await writeFile(unfinished, `${text}\n`, {flush: true, mode: 0o600});
    await rename(unfinished, file);
  } catch (cause) {
    await rm(unfinished, {force: true});
    throw new Fault('BAD_CONFIG', `cannot write ${file}; make its folder writable`, {cause});
  }
}
