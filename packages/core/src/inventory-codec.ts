/** Inventories in bytes. */
import {encode} from 'cborg';
import {z} from 'zod';
import {isProven, shortDigest} from './ids.ts';
import type {LearnedFacts} from './learned.ts';
import {inventoryBytesMax, nameLengthMax} from './limits.ts';
import type {ModelFacts} from './model.ts';
import type {HardwareFacts, Inventory} from './record.ts';
import {presetsTold, wirePreset} from './preset-codec.ts';
import {capability, digestBytes, digestToBytes, inventoryLimit, parse, text, whole, wireVersion} from './wire.ts';

/** Most models one inventory tells of. */
const modelsMax = 2000;

/** Most names told of one model; one blob of Ollama may have many tags. */
const namesMax = 16;

const architectureLengthMax = 64;
const quantLengthMax = 32;

/** Numbers as they travel, as whole hundredths; 0 stands for "not measured". */
const hundredths = whole.transform(value => (value === 0 ? undefined : value / 100));

const learnedFacts = z
  .tuple([hundredths, hundredths, hundredths, hundredths, hundredths, hundredths])
  .rest(z.unknown())
  .transform(([prefillTps, decodeTps, loadMs, holdMs, outputTokens, bytesPerToken]): LearnedFacts => ({
    prefillTps,
    decodeTps,
    loadMs,
    holdMs,
    outputTokens,
    bytesPerToken,
  }));

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
    l: learnedFacts.optional(),
    t: z.array(wirePreset).max(namesMax).optional(),
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
    ...(m.l === undefined ? {} : {learned: m.l}),
    ...(m.t === undefined ? {} : {presets: m.t}),
  }));

const inventory = z.object({
  v: z.literal(wireVersion),
  m: z.array(modelFacts).max(modelsMax),
  c: whole.optional(),
  h: z.tuple([whole.positive(), whole.positive(), whole.positive()]).rest(z.unknown()).optional(),
});

/** Room for the frame around the models. */
const frameBytesMax = 128;

/**
 * Only proven models: an unproven digest must not leave this machine. Deterministic for equal inventories. What does
 * not fit is left out, the same at every time, and `leftOut` is told how many: peers would refuse all of it.
 */
export function encodeInventory(
  {models, contextMax, hardware}: Inventory,
  leftOut: (count: number) => void = () => {},
): Uint8Array {
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
  return encode({
    v: wireVersion,
    m: told,
    ...(contextMax === undefined ? {} : {c: contextMax}),
    ...(hardware ? {h: encodeHardware(hardware)} : {}),
  });
}

export function decodeInventory(data: Uint8Array): Inventory {
  const {m: models, c: contextMax, h} = parse(inventory, data, inventoryLimit);
  return {
    models,
    ...(contextMax === undefined ? {} : {contextMax}),
    ...(h === undefined ? {} : {hardware: decodeHardware(h)}),
  };
}

function decodeHardware([memory, operations, disk]: readonly [number, number, number, ...unknown[]]): HardwareFacts {
  return {
    memoryBytesPerSecond: memory * mega,
    operationsPerSecond: operations * mega,
    diskBytesPerSecond: disk * mega,
  };
}

const mega = 1e6;

function encodeHardware(facts: HardwareFacts): unknown {
  const {memoryBytesPerSecond, operationsPerSecond, diskBytesPerSecond} = facts;
  return [memoryBytesPerSecond, operationsPerSecond, diskBytesPerSecond].map(value =>
    Math.max(1, Math.round(value / mega)),
  );
}

/** Within the limits of the schema above, whatever the header of a file says: one odd file must not hide the others. */
function encodeModel(model: ModelFacts): unknown {
  const presets = presetsTold(model.presets ?? []).slice(0, namesMax);
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
    ...(model.learned === undefined ? {} : {l: encodeLearned(model.learned)}),
    ...(presets.length === 0 ? {} : {t: presets}),
  };
}

function toWhole(value: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(value)));
}

function encodeLearned(facts: LearnedFacts): unknown {
  const {prefillTps, decodeTps, loadMs, holdMs, outputTokens, bytesPerToken} = facts;
  return [prefillTps, decodeTps, loadMs, holdMs, outputTokens, bytesPerToken].map(value => toWhole(100 * (value ?? 0)));
}
