import type {Exclusion, Question, SelfFacts} from './candidates.ts';
import {isProven} from './ids.ts';
import type {Digest} from './ids.ts';
import {guessFrom, inventoryIndex} from './inventory-index.ts';
import type {InventoryIndex, Likely} from './inventory-index.ts';
import {isBatteryLow} from './machine-port.ts';
import type {ModelFacts} from './model.ts';
import type {Beat, EngineBeat} from './record.ts';
import type {KnownNode} from './view.ts';

/** What of a candidate is the same for every request that asks for the same models and abilities. */
export interface NodeFacts {
  readonly beat: Beat;
  /** What alone keeps it from being asked, whatever the way to it. */
  readonly exclusion: Exclusion | undefined;
  readonly model: ModelFacts | undefined;
  readonly engine: EngineBeat | undefined;
  readonly state: 'ready' | 'loading' | 'stored' | 'absent';
  readonly running: number;
  readonly contextTokens: number | undefined;
  readonly roomBytes: number;
  readonly hasRoom: boolean;
  readonly evictSeconds: number;
  readonly likely: Likely | undefined;
  readonly guess: Likely | undefined;
}

type Asking = Pick<Question, 'digests' | 'needs'>;

/** Questions that differ only in the request have the same facts: so many kinds of question are remembered. */
const askingsMax = 32;

/** For each kind of question the facts of each record. A record never changes; a new one takes its place. */
const made = new Map<string, WeakMap<KnownNode, NodeFacts>>();

/** Gives the facts of each node for this kind of question: made at the first request after a record has come. */
export function nodeFactsFor(asking: Asking): (known: KnownNode) => NodeFacts {
  const key = `${asking.digests.join()} ${asking.needs.join()}`;
  const remembered = made.get(key) ?? new WeakMap<KnownNode, NodeFacts>();
  made.delete(key); // to the end: the map is kept in order of use
  made.set(key, remembered);
  if (made.size > askingsMax) for (const oldest of [...made.keys()].slice(0, 1)) made.delete(oldest);
  return known => {
    let facts = remembered.get(known);
    if (facts === undefined) {
      facts = nodeFacts(asking, known.beat, known.inventory ?? noInventory, false);
      remembered.set(known, facts);
    }
    return facts;
  };
}

const noInventory: Omit<SelfFacts, 'beat'> = {models: []};

/** Pure: what a node's own statements say about such requests. */
export function nodeFacts(
  {digests, needs}: Asking,
  beat: Beat,
  {models, hardware, contextMax}: Omit<SelfFacts, 'beat'>,
  isSelf: boolean,
): NodeFacts {
  const index = inventoryIndex(models);
  const model = firstAccepted(digests, index, isSelf);
  const engine = model && beat.engines.find(({digest}) => digest === model.digest);
  const room = roomFor(beat, engine ? undefined : model, index);
  return {
    beat,
    exclusion: exclude(needs, beat, model, {loaded: engine !== undefined, isSelf}),
    model,
    engine,
    state: engine?.readiness ?? (model ? 'stored' : 'absent'),
    running: runningOn(beat),
    contextTokens: engine?.context ?? slotContext(model, contextMax),
    roomBytes: room.bytes,
    hasRoom: room.suffices,
    evictSeconds: room.evictSeconds,
    likely: model && model.learned === undefined ? index.likely(model) : undefined,
    guess: model && hardware && guessFrom(hardware, model),
  };
}

/** The filters that need nothing but the node's own statements, in the stated order. */
function exclude(
  needs: Question['needs'],
  beat: Beat,
  model: ModelFacts | undefined,
  {loaded, isSelf}: {readonly loaded: boolean; readonly isSelf: boolean},
): Exclusion | undefined {
  if (beat.flags.draining) return 'draining';
  if (beat.flags.paused) return 'paused';
  // What enters at the machine is its owner's own matter.
  if (!isSelf && isBatteryLow(beat.flags.batteryShare)) return 'battery';
  if (!model) return 'artifact';
  if (!needs.every(need => model.capabilities.includes(need))) return 'capability';
  if (!loaded && beat.memory.totalBytes > 0 && model.needBytes > beat.memory.totalBytes) return 'too large';
  return undefined;
}

/** Of an engine that is not loaded yet. */
function slotContext(model: ModelFacts | undefined, contextMax: number | undefined): number | undefined {
  if (!model || contextMax === undefined) return undefined;
  return model.contextMax > 0 ? Math.min(model.contextMax, contextMax) : contextMax;
}

function firstAccepted(digests: readonly Digest[], index: InventoryIndex, isSelf: boolean): ModelFacts | undefined {
  for (const digest of digests) {
    if (!isSelf && !isProven(digest)) continue;
    const model = index.find(digest);
    if (model) return model;
  }
  return undefined;
}

function runningOn({engines}: Beat): number {
  let running = 0;
  for (const {busy} of engines) running += busy;
  return running;
}

interface Room {
  readonly bytes: number;
  readonly suffices: boolean;
  readonly evictSeconds: number;
}

/** Room as it is, and whether `wanted` would get in; then at whose cost, the cheapest first. */
function roomFor(beat: Beat, wanted: ModelFacts | undefined, index: InventoryIndex): Room {
  let loadedBytes = 0;
  for (const {sizeBytes} of beat.engines) loadedBytes += sizeBytes;
  const bytes = Math.max(0, beat.memory.totalBytes - loadedBytes);
  let missing = wanted && beat.memory.totalBytes > 0 ? wanted.needBytes - bytes : 0;
  if (missing <= 0) return {bytes, suffices: true, evictSeconds: 0};

  const idle = beat.engines
    .filter(({readiness, busy, queued}) => readiness === 'ready' && busy + queued === 0)
    .map(engine => ({bytes: engine.sizeBytes, seconds: evictionSeconds(engine, index)}))
    .toSorted((a, b) => a.seconds - b.seconds);
  let evictSeconds = 0;
  for (const victim of idle) {
    missing -= victim.bytes;
    evictSeconds += victim.seconds;
    if (missing <= 0) return {bytes, suffices: true, evictSeconds};
  }
  return {bytes, suffices: false, evictSeconds};
}

/** After so long without a request a model is three times less likely to be asked for again. */
const reuseSeconds = 120;
/** Idle time is not gossiped; from the default keep-alive it shows in what is left of it. */
const keepAliveSeconds = 300;

/** What the next request for it would have to wait for, times the chance that there is one soon. */
function evictionSeconds({digest, sizeBytes, untilSeconds}: EngineBeat, index: InventoryIndex): number {
  const loadMs = index.find(digest)?.learned?.loadMs;
  const load = loadMs === undefined ? 0.8 + sizeBytes / 0.5e9 : loadMs / 1000;
  const idleSeconds = untilSeconds < 0 ? 0 : Math.max(0, keepAliveSeconds - untilSeconds);
  return load * Math.exp(-idleSeconds / reuseSeconds);
}
