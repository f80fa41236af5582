/**
 * Beats, leaves and inventories in bytes. Kept apart from the stream messages: they change with what nodes tell of
 * themselves.
 */
import {encode} from 'cborg';
import {z} from 'zod';
import {isProven, shortDigest} from './ids.ts';
import {inventoryBytesMax, nameLengthMax} from './limits.ts';
import type {ModelFacts} from './model.ts';
import type {Beat, EngineBeat, Inventory, Leave, NodeRecord, SignedRecord} from './record.ts';
import {
  capability,
  digestBytes,
  digestToBytes,
  inventoryLimit,
  parse,
  payloadLimit,
  text,
  whole,
  wireVersion,
} from './wire.ts';

/** Most engines one beat tells of: what fits the largest record. */
const enginesMax = 30;
/** Most models one inventory tells of. */
const modelsMax = 2000;

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
  }),
  z.object({k: z.literal('leave'), v: z.literal(wireVersion), b: whole, s: whole}),
]);

const drainingBit = 1;
const pausedBit = 2;

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
    f: (beat.flags.draining ? drainingBit : 0) + (beat.flags.paused ? pausedBit : 0),
  });
}

export function encodeLeave({boot, sequence}: Leave): Uint8Array {
  return encode({k: 'leave', v: wireVersion, b: boot, s: sequence});
}

/** The record inside a signed envelope whose signature has been checked. */
export function decodeRecord({node, payload}: SignedRecord): NodeRecord {
  const found = parse(record, payload, payloadLimit);
  if (found.k === 'leave') return {kind: 'leave', node, boot: found.b, sequence: found.s};
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
    flags: {draining: (found.f & drainingBit) !== 0, paused: (found.f & pausedBit) !== 0},
  };
}

const architectureLengthMax = 64;
const quantLengthMax = 32;

const modelFacts = z
  .object({
    d: digestBytes,
    n: z.tuple([text(nameLengthMax)], text(nameLengthMax)),
    z: whole,
    y: whole,
    a: text(architectureLengthMax),
    q: text(quantLengthMax),
    p: whole,
    c: whole,
    x: z.array(z.string()).max(16),
    o: z.boolean(),
  })
  .transform((m): ModelFacts => ({
    digest: m.d,
    names: m.n,
    sizeBytes: m.z,
    needBytes: m.y,
    architecture: m.a,
    quant: m.q,
    parameters: m.p,
    contextMax: m.c,
    capabilities: m.x.flatMap(word => capability.safeParse(word).data ?? []), // a newer version may know more
    demo: m.o,
  }));

const inventory = z.object({v: z.literal(wireVersion), m: z.array(modelFacts).max(modelsMax)});

/** Room for the frame around the models. */
const frameBytesMax = 64;

/**
 * Only proven models: an unproven digest must not leave this machine. Deterministic for equal inventories. What does
 * not fit is left out, the same at every time, and `leftOut` is told how many: peers would refuse all of it.
 */
export function encodeInventory({models}: Inventory, leftOut: (count: number) => void = () => {}): Uint8Array {
  const proven = models.filter(({digest}) => isProven(digest)).toSorted((a, b) => (a.digest < b.digest ? -1 : 1));
  const told: unknown[] = [];
  let bytes = frameBytesMax;
  for (const model of proven.slice(0, modelsMax)) {
    const one = encodeModel(model);
    bytes += encode(one).length;
    if (bytes > inventoryBytesMax) break;
    told.push(one);
  }
  if (told.length < proven.length) leftOut(proven.length - told.length);
  return encode({v: wireVersion, m: told});
}

export function decodeInventory(data: Uint8Array): Inventory {
  return {models: parse(inventory, data, inventoryLimit).m};
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

/** Most names told of one model; one blob of Ollama may have many tags. */
const namesMax = 16;

/** Within the limits of the schema above, whatever the header of a file says: one odd file must not hide the others. */
function encodeModel(model: ModelFacts): unknown {
  const [first, ...rest] = model.names.map(name => name.slice(0, nameLengthMax)).filter(name => name !== '');
  return {
    d: digestToBytes(model.digest),
    n: [first ?? shortDigest(model.digest), ...rest].slice(0, namesMax),
    z: model.sizeBytes,
    y: toWhole(model.needBytes),
    a: model.architecture.slice(0, architectureLengthMax),
    q: model.quant.slice(0, quantLengthMax),
    p: toWhole(model.parameters),
    c: toWhole(model.contextMax),
    x: model.capabilities,
    o: model.demo,
  };
}

function toWhole(value: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(value)));
}
