/** How statements on membership, and the talk about them, are laid out in bytes; see docs/protocol.md. */
import {encode} from 'cborg';
import {z} from 'zod';
import {exchangeBytesMax, hints, revocations, statementChain, statementPart, writeChain} from './exchange-codec.ts';
import type {ChainedStatement} from './exchange-codec.ts';
import {isNodeId} from './ids.ts';
import type {NodeId} from './ids.ts';
import {nameLengthMax, statementBytesMax} from './limits.ts';
import type {SignedStatement, Statement} from './membership.ts';
import {parse, wireVersion} from './wire.ts';

const statement = z
  .object({
    v: z.literal(wireVersion),
    k: z.enum(['pass', 'revoke']),
    m: z.custom<NodeId>(isNodeId),
    n: z.custom<NodeId>(isNodeId),
    a: z.string().max(nameLengthMax),
    r: z.int().nonnegative().default(0),
    e: z.int().nonnegative().default(0),
  })
  .transform((s): Statement => {
    const common = {mesh: s.m, node: s.n, name: s.a};
    // A role that a newer version may know gives no more than membership.
    const pass = {kind: 'pass', ...common, role: s.r === 1 ? 'keeper' : 'member', expiresAtMs: s.e * 1000} as const;
    return s.k === 'pass' ? pass : {kind: 'revocation', ...common};
  });

export function encodeStatement(made: Statement): Uint8Array {
  const common = {v: wireVersion, m: made.mesh, n: made.node, a: made.name};
  if (made.kind === 'revocation') return encode({...common, k: 'revoke'});
  const seconds = Math.floor(made.expiresAtMs / 1000);
  return encode({...common, k: 'pass', r: made.role === 'keeper' ? 1 : 0, e: seconds});
}

export function decodeStatement(payload: Uint8Array): Statement {
  return parse(statement, payload, {max: statementBytesMax, what: 'statement', code: 'PEER_FAILED'});
}

/** What a node asks of another about membership, one question a stream. */
export type MembersQuestion =
  /** From a stranger: the secret of an invite is all that it has. */
  | {readonly kind: 'join'; readonly secret: Uint8Array; readonly name: string}
  | {readonly kind: 'renew'}
  /** "I belong to this mesh no longer": nobody needs to stay for this node. */
  | {readonly kind: 'leave'}
  /** "This mesh is closed from now on, and you belong to it": only to nodes that are admitted in an open one. */
  | {
      readonly kind: 'adopt';
      readonly mesh: NodeId;
      readonly chain: readonly SignedStatement[];
      readonly meshSecret?: Uint8Array | undefined;
    }
  | {readonly kind: 'revoke'; readonly revocations: readonly ChainedStatement[]};

export type MembersAnswer =
  | {
      readonly kind: 'welcome';
      readonly mesh: NodeId;
      readonly meshName: string;
      readonly chain: readonly SignedStatement[];
      readonly revocations: readonly ChainedStatement[];
      readonly addresses: readonly {readonly node: NodeId; readonly addresses: readonly string[]}[];
      /** What all members know and nobody else: the key of what they tell each other in hashes. */
      readonly meshSecret?: Uint8Array | undefined;
    }
  | {readonly kind: 'done'}
  | {readonly kind: 'no'; readonly reason: string};

const reasonLengthMax = 500;
const secretLengthMax = 64;
const mesh = z.custom<NodeId>(isNodeId);
const meshSecret = z
  .instanceof(Uint8Array)
  .refine(({length}) => length >= 16 && length <= secretLengthMax)
  .optional();
const v = z.literal(wireVersion);

function secretOf({q}: {readonly q?: Uint8Array | undefined}): {readonly meshSecret?: Uint8Array} {
  return q === undefined ? {} : {meshSecret: q};
}

const question = z
  .discriminatedUnion('k', [
    z.object({
      v,
      k: z.literal('join'),
      s: z.instanceof(Uint8Array).refine(({length}) => length <= secretLengthMax),
      n: z.string().max(nameLengthMax),
    }),
    z.object({v, k: z.literal('renew')}),
    z.object({v, k: z.literal('adopt'), i: mesh, p: statementChain, q: meshSecret}),
    z.object({v, k: z.literal('revoke'), y: revocations}),
    z.object({v, k: z.literal('leave')}),
  ])
  .transform((q): MembersQuestion => {
    switch (q.k) {
      case 'join':
        return {kind: 'join', secret: q.s, name: q.n};
      case 'renew':
      case 'leave':
        return {kind: q.k};
      case 'adopt':
        return {kind: 'adopt', mesh: q.i, chain: q.p, ...secretOf(q)};
      case 'revoke':
        return {kind: 'revoke', revocations: q.y};
    }
  });

export function encodeMembersQuestion(asked: MembersQuestion): Uint8Array {
  switch (asked.kind) {
    case 'join':
      return encode({v: wireVersion, k: 'join', s: asked.secret, n: asked.name});
    case 'renew':
    case 'leave':
      return encode({v: wireVersion, k: asked.kind});
    case 'adopt':
      return encode({v: wireVersion, k: 'adopt', i: asked.mesh, p: writeChain(asked.chain), ...secretPart(asked)});
    case 'revoke':
      return encode({v: wireVersion, k: 'revoke', y: asked.revocations.map(statementPart)});
  }
}

export function decodeMembersQuestion(data: Uint8Array): MembersQuestion {
  return parse(question, data, {max: exchangeBytesMax, what: 'question on membership', code: 'PEER_FAILED'});
}

const answer = z
  .discriminatedUnion('k', [
    z.object({
      v,
      k: z.literal('welcome'),
      i: mesh,
      m: z.string().max(nameLengthMax),
      p: statementChain,
      y: revocations,
      a: hints,
      q: meshSecret,
    }),
    z.object({v, k: z.literal('done')}),
    z.object({v, k: z.literal('no'), t: z.string().max(reasonLengthMax)}),
  ])
  .transform((a): MembersAnswer => {
    switch (a.k) {
      case 'welcome':
        return {
          kind: 'welcome',
          mesh: a.i,
          meshName: a.m,
          chain: a.p,
          revocations: a.y,
          addresses: a.a,
          ...secretOf(a),
        };
      case 'done':
        return {kind: 'done'};
      case 'no':
        return {kind: 'no', reason: a.t};
    }
  });

export function encodeMembersAnswer(given: MembersAnswer): Uint8Array {
  switch (given.kind) {
    case 'welcome':
      return encode({
        v: wireVersion,
        k: 'welcome',
        i: given.mesh,
        m: given.meshName,
        p: writeChain(given.chain),
        y: given.revocations.map(statementPart),
        a: given.addresses.map(({node, addresses}) => [node, addresses]),
        ...secretPart(given),
      });
    case 'done':
      return encode({v: wireVersion, k: 'done'});
    case 'no':
      return encode({v: wireVersion, k: 'no', t: given.reason.slice(0, reasonLengthMax)});
  }
}

function secretPart({meshSecret: secret}: {readonly meshSecret?: Uint8Array | undefined}): {readonly q?: Uint8Array} {
  return secret === undefined ? {} : {q: secret};
}

export function decodeMembersAnswer(data: Uint8Array): MembersAnswer {
  return parse(answer, data, {max: exchangeBytesMax, what: 'answer on membership', code: 'PEER_FAILED'});
}
