/**
 * How records, stream headers and exchanges are laid out in bytes: CBOR maps with short keys, described in
 * docs/protocol.md. Unknown keys and further array elements are ignored, so that a newer version may add fields.
 * Every decoder throws a Fault and nothing else, whatever the bytes are.
 */
import {decode, encode} from 'cborg';
import {z} from 'zod';
import type {Caller} from './caller.ts';
import {describeError, Fault} from './fault.ts';
import type {FaultCode} from './fault.ts';
import {hexFrom, isNodeId, isProven, isRequestId, toDigest} from './ids.ts';
import type {Digest, NodeId, RequestId} from './ids.ts';
import {contentTypeLengthMax, inventoryBytesMax, nameLengthMax, offerBytesMax, recordBytesMax} from './limits.ts';
import {capabilities} from './model.ts';
import type {Capability} from './model.ts';
import type {Policy} from './policy.ts';
import type {SignedRecord} from './record.ts';
import {endpoints} from './work.ts';
import type {Busy, Refusal, WorkRequest} from './work.ts';

/** Version of every message below. A message of another major version is refused by name. */
export const wireVersion = 1 as const;

/** Put before a payload when it is signed, so that the signature means nothing anywhere else. */
export const recordContext: Uint8Array = new TextEncoder().encode('hearsay record 1\n');

/** What a worker answers with yes, before the HTTP exchange begins. */
export interface Accepted {
  readonly kind: 'accepted';
  readonly digest: Digest;
  readonly loadSeq?: number | undefined;
}

export type OfferAnswer = Accepted | Busy | Refusal;

/** Most digests one request may accept. */
const digestsMax = 64;
/** Most message ends that an offer tells of: the newest are the ones that another conversation could share. */
const prefixMax = 64;

export const text = (max: number): z.ZodString => z.string().max(max);
export const whole: z.ZodNumber = z.number().int().nonnegative();
const bytes = z.instanceof(Uint8Array);
export const nodeId: z.ZodType<NodeId> = z.custom<NodeId>(isNodeId);
export const digestBytes: z.ZodType<Digest, Uint8Array> = bytes
  .refine(value => value.length === 32)
  .transform(value => toDigest(`sha256:${hexFrom(value)}`));
export const capability: z.ZodType<Capability> = z.enum(capabilities);

export const signedRecord: z.ZodType<SignedRecord> = z
  .tuple([z.literal(wireVersion), nodeId, bytes, bytes])
  .rest(z.unknown())
  .transform(([, node, payload, signature]): SignedRecord => ({node, payload, signature}));

export function encodeSignedRecord({node, payload, signature}: SignedRecord): Uint8Array {
  return encode([wireVersion, node, payload, signature]);
}

export function decodeSignedRecord(data: Uint8Array): SignedRecord {
  return parse(signedRecord, data, {max: recordBytesMax, what: 'record', code: 'PEER_FAILED'});
}

const policy = z
  .object({
    m: z.enum(['auto', 'prefer', 'pin']),
    n: z.array(text(nameLengthMax)).max(digestsMax),
    l: z.boolean(),
    x: z.array(text(nameLengthMax)).max(digestsMax).optional(),
  })
  .transform(({m, n, l, x}): Policy => ({
    placement: m === 'auto' ? {kind: m} : {kind: m, nodes: n},
    exclude: x ?? [],
    localRequired: l,
  }));

/** Most entries of one list of rights that travels. */
const rightsMax = 64;
const rightsList = z.array(text(nameLengthMax)).max(rightsMax).optional();
const caller = z.object({n: text(nameLengthMax), m: rightsList, o: rightsList}).transform(({n, m, o}): Caller => ({
  name: n,
  rights: {models: m, workloads: undefined, nodes: o, policies: undefined},
  policy: undefined,
}));

const offer = z
  .object({
    v: z.literal(wireVersion),
    r: z.custom<RequestId>(isRequestId),
    a: whole.positive(),
    h: whole,
    d: z.array(digestBytes).min(1).max(digestsMax),
    e: z.enum(endpoints),
    n: z.array(capability).max(8),
    p: policy,
    t: whole.optional(),
    z: whole,
    w: whole,
    f: z.boolean(),
    c: text(64).optional(),
    u: caller.optional(),
    y: text(contentTypeLengthMax).optional(),
    k: z.int().min(-1).optional(),
    l: whole.positive().optional(),
    q: z.boolean().optional(),
    x: z.array(whole.max(0xffff_ffff)).max(prefixMax).optional(),
  })
  .transform((o): WorkRequest => ({
    request: o.r,
    attempt: o.a,
    hop: o.h,
    digests: o.d,
    endpoint: o.e,
    needs: o.n,
    policy: o.p,
    deadlineMs: o.t,
    bodyBytes: o.z,
    waitEstimateMs: o.w,
    force: o.f,
    traceparent: o.c,
    ...(o.u === undefined ? {} : {caller: o.u}),
    ...(o.y === undefined ? {} : {contentType: o.y}),
    ...(o.k === undefined ? {} : {keepAliveMs: o.k < 0 ? Infinity : o.k}),
    ...(o.l === undefined ? {} : {contextTokens: o.l}),
    ...(o.q === undefined ? {} : {claim: o.q}),
    ...(o.x === undefined ? {} : {prefix: o.x}),
  }));

/** The stream header. Only proven digests may leave this machine. */
export function encodeOffer(request: WorkRequest): Uint8Array {
  const {placement, exclude, localRequired} = request.policy;
  const nodes = placement.kind === 'auto' ? [] : placement.nodes;
  return encode({
    v: wireVersion,
    r: request.request,
    a: request.attempt,
    h: request.hop,
    d: request.digests.filter(isProven).map(digestToBytes),
    e: request.endpoint,
    n: request.needs,
    p: {m: placement.kind, n: nodes, l: localRequired, ...(exclude.length > 0 ? {x: exclude} : {})},
    ...(request.deadlineMs === undefined ? {} : {t: Math.round(request.deadlineMs)}),
    z: request.bodyBytes,
    w: Math.round(request.waitEstimateMs),
    f: request.force,
    ...(request.traceparent === undefined ? {} : {c: request.traceparent}),
    ...(request.caller === undefined ? {} : {u: callerPart(request.caller)}),
    ...(request.contentType === undefined ? {} : {y: request.contentType}),
    ...(request.keepAliveMs === undefined ? {} : {k: keepAliveOnWire(request.keepAliveMs)}),
    ...(request.contextTokens === undefined ? {} : {l: Math.min(Number.MAX_SAFE_INTEGER, request.contextTokens)}),
    ...(request.claim === true ? {q: true} : {}),
    ...(request.prefix === undefined ? {} : {x: request.prefix.slice(-prefixMax)}),
  });
}

/** CBOR without infinities: -1 is for ever. */
function keepAliveOnWire(ms: number): number {
  return ms === Infinity ? -1 : Math.round(ms);
}

/** What a worker can check by itself: the rights to models and to nodes. */
function callerPart({name, rights: {models, nodes}}: Caller): unknown {
  return {n: name, ...(models === undefined ? {} : {m: models}), ...(nodes === undefined ? {} : {o: nodes})};
}

export function decodeOffer(data: Uint8Array): WorkRequest {
  return parse(offer, data, {max: offerBytesMax, what: 'offer', code: 'BAD_REQUEST'});
}

const answer = z
  .discriminatedUnion('k', [
    z.object({k: z.literal('accept'), d: digestBytes, l: whole.optional()}),
    z.object({
      k: z.literal('busy'),
      w: z.enum(['slots', 'memory', 'loading', 'draining']).catch('slots'), // a newer version may know more reasons
      s: signedRecord.optional(),
      t: whole,
    }),
    z.object({
      k: z.literal('refuse'),
      c: z
        .enum(['auth', 'hop', 'digest', 'stale-attempt', 'policy', 'capability', 'broken', 'memory', 'too-large'])
        .catch('policy'),
      m: text(2000),
    }),
  ])
  .transform((a): OfferAnswer => {
    switch (a.k) {
      case 'accept':
        return {kind: 'accepted', digest: a.d, ...(a.l === undefined ? {} : {loadSeq: a.l})};
      case 'busy':
        return {kind: 'busy', reason: a.w, record: a.s, retryAfterMs: a.t};
      case 'refuse':
        return {kind: 'refused', code: a.c, message: a.m};
    }
  });

export function encodeOfferAnswer(given: OfferAnswer): Uint8Array {
  switch (given.kind) {
    case 'accepted':
      return encode({
        k: 'accept',
        d: digestToBytes(given.digest),
        ...(given.loadSeq === undefined ? {} : {l: given.loadSeq}),
      });
    case 'busy':
      return encode({k: 'busy', w: given.reason, t: Math.round(given.retryAfterMs), ...recordPart(given.record)});
    case 'refused':
      return encode({k: 'refuse', c: given.code, m: given.message.slice(0, 2000)});
  }
}

export function decodeOfferAnswer(data: Uint8Array): OfferAnswer {
  return parse(answer, data, {max: offerBytesMax, what: 'answer to an offer', code: 'PEER_FAILED'});
}

interface ParseOptions {
  readonly max: number;
  readonly what: string;
  readonly code: FaultCode;
}

/** Decodes CBOR and checks it. Sizes are checked before anything is parsed. */
export function parse<T>(schema: z.ZodType<T>, data: Uint8Array, {max, what, code}: ParseOptions): T {
  if (data.length > max) throw new Fault(code, `${what} of ${data.length} bytes is larger than ${max}`);
  let value: unknown;
  try {
    value = decode(data, {allowIndefinite: false, allowNaN: false, allowInfinity: false, rejectDuplicateMapKeys: true});
  } catch (cause) {
    throw new Fault(code, `${what} is not CBOR: ${describeError(cause)}`, {cause});
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new Fault(code, `${what} cannot be used: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
}

/**
 * Whether bytes that cannot be used may be those of a newer version: then it is no fault of whoever sent them. The
 * version is the first element of an array, or under `v` in a map; a map of this version is newer when its kind, under
 * `k`, is none of `kinds`.
 */
export function isFromNewer(data: Uint8Array, kinds: readonly string[] = []): boolean {
  const value = tryDecode(data);
  if (Array.isArray(value)) return isNewer(value[0]);
  if (typeof value !== 'object' || value === null) return false;
  const kind = 'k' in value ? value.k : undefined;
  return ('v' in value && isNewer(value.v)) || (typeof kind === 'string' && kinds.length > 0 && !kinds.includes(kind));
}

function isNewer(version: unknown): boolean {
  return typeof version === 'number' && version > wireVersion;
}

function tryDecode(data: Uint8Array): unknown {
  try {
    return decode(data, {allowIndefinite: false, rejectDuplicateMapKeys: true});
  } catch {
    return undefined;
  }
}

function recordPart(record: SignedRecord | undefined): {s?: unknown} {
  return record === undefined ? {} : {s: [wireVersion, record.node, record.payload, record.signature]};
}

export function digestToBytes(digest: Digest): Uint8Array {
  if (!isProven(digest)) throw new Fault('INTERNAL', 'an unproven digest must not leave this machine');
  const value = new Uint8Array(32);
  for (let index = 0; index < 32; index += 1) {
    value[index] = 16 * digit(digest.charCodeAt(7 + 2 * index)) + digit(digest.charCodeAt(8 + 2 * index));
  }
  return value;
}

/** Of a hex digit in lower case, which is all that a digest has. */
function digit(code: number): number {
  return code < 0x3a ? code - 0x30 : code - 0x57;
}

/** Largest inventory message; see `limits.ts`. */
export const inventoryLimit: ParseOptions = {max: inventoryBytesMax, what: 'inventory', code: 'PEER_FAILED'};
/** Largest record payload. */
export const payloadLimit: ParseOptions = {max: recordBytesMax, what: 'record payload', code: 'PEER_FAILED'};
