/**
 * Beats, sketches and leaves in bytes. Kept apart from the stream messages: they change with what nodes tell of
 * themselves.
 */
import {encode} from 'cborg';
import {z} from 'zod';
import {isProven} from './ids.ts';
import {nameLengthMax} from './limits.ts';
import type {Beat, EngineBeat, Leave, NodeFlags, NodeRecord, SignedRecord, Sketch} from './record.ts';
import {digestBytes, digestToBytes, isFromNewer, parse, payloadLimit, text, whole, wireVersion} from './wire.ts';

/** Most engines one beat tells of: what fits the largest record. */
const enginesMax = 30;

const engine = z
  .tuple([
    digestBytes,
    z.union([z.literal(0), z.literal(1)]),
    whole,
    whole,
    whole,
    whole,
    whole,
    whole,
    z.int().min(-1),
    whole,
  ])
  .rest(z.unknown())
  .transform(
    ([digest, ready, slots, busy, queued, waitMs, context, ageSeconds, untilSeconds, sizeBytes]): EngineBeat => ({
      digest,
      readiness: ready === 1 ? 'ready' : 'loading',
      slots,
      busy,
      queued,
      waitMs,
      context,
      ageSeconds,
      untilSeconds,
      sizeBytes,
    }),
  );

const record = z.discriminatedUnion('k', [
  z.object({
    k: z.literal('beat'),
    v: z.literal(wireVersion),
    b: whole,
    s: whole,
    n: text(nameLengthMax),
    r: text(64),
    t: whole.max(600_000),
    l: whole,
    i: text(16),
    e: z.array(engine).max(enginesMax),
    m: z.tuple([z.union([z.literal(0), z.literal(1)]), whole, whole]).rest(z.unknown()),
    f: whole,
    p: z.int().min(0).max(100).optional(),
  }),
  z.object({
    k: z.literal('sketch'),
    v: z.literal(wireVersion),
    b: whole,
    s: whole,
    p: z.array(z.tuple([digestBytes, z.instanceof(Uint8Array)]).rest(z.unknown())).max(enginesMax),
  }),
  z.object({k: z.literal('leave'), v: z.literal(wireVersion), b: whole, s: whole}),
]);

const drainingBit = 1;
const pausedBit = 2;
const hotBit = 4;

/** The payload of a beat; the node itself stands in the envelope, where the signature proves it. */
export function encodeBeat(beat: Beat): Uint8Array {
  return encode({
    k: 'beat',
    v: wireVersion,
    b: beat.boot,
    s: beat.sequence,
    n: beat.name,
    r: beat.version,
    t: Math.round(beat.ttlMs),
    l: beat.loadSeq,
    i: beat.inventory,
    e: beat.engines
      .filter(({digest}) => isProven(digest))
      .slice(0, enginesMax)
      .map(encodeEngine),
    m: [beat.memory.kind === 'device' ? 1 : 0, Math.round(beat.memory.totalBytes), Math.round(beat.memory.freeBytes)],
    f: encodeFlags(beat.flags),
    ...(beat.flags.batteryShare === undefined ? {} : {p: Math.round(100 * beat.flags.batteryShare)}),
  });
}

function encodeFlags({draining, paused, isHot}: NodeFlags): number {
  return (draining ? drainingBit : 0) + (paused ? pausedBit : 0) + (isHot === true ? hotBit : 0);
}

export function encodeLeave({boot, sequence}: Leave): Uint8Array {
  return encode({k: 'leave', v: wireVersion, b: boot, s: sequence});
}

/** Most hashes in one sketch, over all models: what fits the largest record. */
const hashesMax = 384;

/** The payload of a sketch; of each model the newest hashes, until it is full. */
export function encodeSketch({boot, sequence, prompts}: Sketch): Uint8Array {
  let left = hashesMax;
  const p: unknown[] = [];
  for (const [digest, hashes] of prompts) {
    if (!isProven(digest) || left === 0 || p.length >= hashedModelsMax) continue;
    const newest = [...hashes].slice(-left);
    left -= newest.length;
    p.push([digestToBytes(digest), encodeHashes(newest)]);
  }
  return encode({k: 'sketch', v: wireVersion, b: boot, s: sequence, p});
}

/** Their digests take 36 bytes each. */
const hashedModelsMax = 8;

function encodeHashes(hashes: readonly number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(4 * hashes.length));
  for (const [index, hash] of hashes.entries()) view.setUint32(4 * index, hash);
  return new Uint8Array(view.buffer);
}

function decodeHashes(bytes: Uint8Array): ReadonlySet<number> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return new Set(Array.from({length: Math.floor(bytes.length / 4)}, (_, index) => view.getUint32(4 * index)));
}

/** Whether a record that cannot be used may be one of a newer version. */
export function isRecordFromNewer({payload}: SignedRecord): boolean {
  return isFromNewer(payload, ['beat', 'sketch', 'leave']);
}

/** The record inside a signed envelope whose signature has been checked. */
export function decodeRecord({node, payload}: SignedRecord): NodeRecord {
  const found = parse(record, payload, payloadLimit);
  if (found.k === 'leave') return {kind: 'leave', node, boot: found.b, sequence: found.s};
  if (found.k === 'sketch') {
    const prompts = new Map(found.p.map(([digest, bytes]) => [digest, decodeHashes(bytes)]));
    return {kind: 'sketch', node, boot: found.b, sequence: found.s, prompts};
  }
  const [kind, totalBytes, freeBytes] = found.m;
  return {
    kind: 'beat',
    node,
    boot: found.b,
    sequence: found.s,
    name: found.n,
    version: found.r,
    ttlMs: found.t,
    loadSeq: found.l,
    inventory: found.i,
    engines: found.e,
    memory: {kind: kind === 1 ? 'device' : 'ram', totalBytes, freeBytes},
    flags: {
      draining: (found.f & drainingBit) !== 0,
      paused: (found.f & pausedBit) !== 0,
      ...((found.f & hotBit) === 0 ? {} : {isHot: true}),
      ...(found.p === undefined ? {} : {batteryShare: found.p / 100}),
    },
  };
}

function encodeEngine(beat: EngineBeat): unknown {
  return [
    digestToBytes(beat.digest),
    beat.readiness === 'ready' ? 1 : 0,
    beat.slots,
    beat.busy,
    beat.queued,
    Math.round(beat.waitMs),
    beat.context,
    Math.round(beat.ageSeconds),
    Math.round(beat.untilSeconds),
    beat.sizeBytes,
  ];
}
