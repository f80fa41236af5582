import {encode} from 'cborg';
import {z} from 'zod';
import type {NodeId} from './ids.ts';
import {nameLengthMax, revocationsMax, statementBytesMax, viewNodesMax} from './limits.ts';
import {chainMax} from './membership.ts';
import type {SignedStatement} from './membership.ts';
import type {AgedRecord} from './mesh-port.ts';
import {nodeId, parse, signedRecord, text, whole, wireVersion} from './wire.ts';

/** A statement and the passes that show why its signer may make it. */
export interface ChainedStatement {
  readonly statement: SignedStatement;
  readonly chain: readonly SignedStatement[];
}

/** Why a node does not admit the one it talks to, in a word. */
export type RefusalWord = (typeof refusalWords)[number];

/** What two nodes tell each other on connect and every 30 s. */
export interface ExchangeMessage {
  /** Only nodes of one mesh name admit each other. */
  readonly mesh: string;
  /** The node's name for people; empty where that is nobody's business yet. */
  readonly name: string;
  readonly records: readonly AgedRecord[];
  /** Where other admitted peers were seen; a hint for dialling, never proof of anything. */
  readonly addresses: readonly {readonly node: NodeId; readonly addresses: readonly string[]}[];
  /** Of a closed mesh: which one, and what shows that the sender belongs to it. */
  readonly member?: {readonly mesh: NodeId; readonly chain: readonly SignedStatement[]} | undefined;
  readonly revocations?: readonly ChainedStatement[] | undefined;
  /** The sender passes connections on between members that cannot reach each other. */
  readonly relay?: boolean | undefined;
  /** The sender does not admit the reader, and this is why. */
  readonly refusal?: RefusalWord | undefined;
}

const refusalWords = ['mesh', 'closed', 'open', 'network', 'revoked', 'expired'] as const;

/** Most addresses told of one peer: its interfaces, not more. */
const addressesPerNodeMax = 8;
/** Longest multiaddr anybody needs, with a relay and two peer ids. */
const addressLengthMax = 256;

/** Largest exchange: every node's record and addresses. */
export const exchangeBytesMax: number = 1024 * 1024;

const bytes = z.instanceof(Uint8Array).refine(({length}) => length <= statementBytesMax);

const signedStatement = z
  .tuple([z.literal(wireVersion), nodeId, bytes, bytes])
  .rest(z.unknown())
  .transform(([, signer, payload, signature]): SignedStatement => ({signer, payload, signature}));

export const statementChain: z.ZodType<readonly SignedStatement[]> = z.array(signedStatement).max(chainMax);

export const revocations: z.ZodType<readonly ChainedStatement[]> = z
  .array(
    z
      .tuple([signedStatement, statementChain])
      .rest(z.unknown())
      .transform(([statement, chain]): ChainedStatement => ({statement, chain})),
  )
  .max(revocationsMax);

export const hints: z.ZodType<ExchangeMessage['addresses']> = z
  .array(
    z
      .tuple([nodeId, z.array(text(addressLengthMax)).max(addressesPerNodeMax)])
      .rest(z.unknown())
      .transform(([node, addresses]) => ({node, addresses})),
  )
  .max(viewNodesMax);

const exchange = z
  .object({
    v: z.literal(wireVersion),
    m: text(nameLengthMax),
    n: text(nameLengthMax),
    r: z.array(z.tuple([signedRecord, whole]).rest(z.unknown())).max(viewNodesMax),
    a: hints,
    i: nodeId.optional(),
    p: statementChain.optional(),
    y: revocations.optional(),
    w: z.boolean().optional(),
    x: z.enum(refusalWords).catch('closed').optional(), // a newer version may know more reasons
  })
  .transform((e): ExchangeMessage => ({
    mesh: e.m,
    name: e.n,
    records: e.r.map(([record, ageMs]) => ({record, ageMs})),
    addresses: e.a,
    member: e.i === undefined ? undefined : {mesh: e.i, chain: e.p ?? []},
    revocations: e.y,
    relay: e.w,
    refusal: e.x,
  }));

export function encodeExchange(message: ExchangeMessage): Uint8Array {
  const {member, revocations: revoked, relay, refusal} = message;
  return encode({
    v: wireVersion,
    m: message.mesh,
    n: message.name,
    r: message.records.map(({record, ageMs}) => [
      [wireVersion, record.node, record.payload, record.signature],
      Math.round(ageMs),
    ]),
    a: message.addresses.map(({node, addresses}) => [node, addresses.slice(0, addressesPerNodeMax)]),
    ...(member === undefined ? {} : {i: member.mesh, p: writeChain(member.chain)}),
    ...(revoked === undefined ? {} : {y: revoked.map(statementPart)}),
    ...(relay === undefined ? {} : {w: relay}),
    ...(refusal === undefined ? {} : {x: refusal}),
  });
}

export function decodeExchange(data: Uint8Array): ExchangeMessage {
  return parse(exchange, data, {max: exchangeBytesMax, what: 'exchange', code: 'PEER_FAILED'});
}

export function writeChain(chain: readonly SignedStatement[]): unknown {
  return chain.map(({signer, payload, signature}) => [wireVersion, signer, payload, signature]);
}

export function statementPart({statement, chain}: ChainedStatement): unknown {
  const {signer, payload, signature} = statement;
  return [[wireVersion, signer, payload, signature], writeChain(chain)];
}
