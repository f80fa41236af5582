import {isProven} from './ids.ts';
import type {Digest, NodeId} from './ids.ts';
import {inventoryIndex} from './inventory-index.ts';
import type {InventoryIndex} from './inventory-index.ts';
import type {LearnedFacts} from './learned.ts';
import type {Capability, ModelFacts} from './model.ts';
import type {Policy} from './policy.ts';
import type {Beat, EngineBeat, HardwareFacts} from './record.ts';
import {isAlive} from './view.ts';
import type {View} from './view.ts';

/** Why a node is not asked. In the order in which the filters are applied (design §4); the last comes from ranking. */
export type Exclusion =
  | 'not authorized'
  | 'policy'
  | 'not connected'
  | 'quarantined'
  | 'stale'
  | 'draining'
  | 'paused'
  | 'capability'
  | 'artifact'
  | 'too large'
  | 'tried'
  | 'busy'
  | 'second copy';

/** What this node itself knows of its way to another. Never gossiped. */
export interface Reach {
  readonly roundTripMs: number | undefined;
  /** The way goes through a third node. */
  readonly relayed: boolean;
  /** After failed offers: not asked before this moment, unless nobody else is left. */
  readonly quarantinedUntilMs: number;
  /** Offers in a row that failed. */
  readonly failures: number;
  /** This node's own offers that the other's newest record cannot know of yet. */
  readonly ownOffers: number;
}

/** One node as it stands for one request: everything that ranking goes by, as plain data that a journal can keep. */
export interface Candidate {
  readonly node: NodeId;
  readonly name: string;
  readonly self: boolean;
  /** Undefined: it may be asked. */
  readonly exclusion: Exclusion | undefined;
  /** What it would run. */
  readonly digest: Digest | undefined;
  readonly state: 'ready' | 'loading' | 'stored' | 'absent';
  readonly preferred: boolean;
  /** How long ago the node told of itself. */
  readonly ageMs: number;
  readonly slots: number;
  readonly busy: number;
  readonly freeSlots: number;
  readonly queued: number;
  readonly waitMs: number;
  /** Requests that run on the node, whatever their model: they share its device. */
  readonly running: number;
  readonly ownOffers: number;
  readonly sizeBytes: number;
  /** Context of one slot, of its engine or of the one that would be loaded; undefined when that is not told. */
  readonly contextTokens: number | undefined;
  /** Memory that its models may use less the weights of what is loaded; never negative (S27). */
  readonly roomBytes: number;
  /** For a model that is too large: what is missing even when nothing else is loaded. */
  readonly missingBytes?: number | undefined;
  /** It could be loaded now, if idle models made room. */
  readonly hasRoom: boolean;
  /** What loading it here would cost those who use the models that had to go. */
  readonly evictSeconds: number;
  readonly roundTripMs: number | undefined;
  readonly relayed: boolean;
  readonly failures: number;
  /** What the node has measured of this model. */
  readonly learned: LearnedFacts | undefined;
  /** What its other models, or its kind of machine, let expect of this one. */
  readonly likely: Pick<LearnedFacts, 'prefillTps' | 'decodeTps' | 'loadMs'> | undefined;
  /** So much of the prompt it has probably read before. */
  readonly hitBytes: number;
}

/** This node, which needs no gossip to know itself; the same shape as what it tells others. */
export interface SelfFacts {
  readonly beat: Beat;
  /** With models still unproven: they serve what enters here. */
  readonly models: readonly ModelFacts[];
  readonly hardware?: HardwareFacts | undefined;
  /** Most context that a slot gets here. */
  readonly contextMax?: number | undefined;
}

export interface Question {
  readonly digests: readonly Digest[];
  readonly needs: readonly Capability[];
  readonly policy: Policy;
  /** Nodes that the application's key allows; undefined: all. */
  readonly allowedNodes?: readonly string[] | undefined;
  /** Nodes that have refused this request or failed in it. */
  readonly tried: ReadonlySet<NodeId>;
  /** Nodes that have answered it with busy. They still count as holders of the model. */
  readonly busy: ReadonlySet<NodeId>;
  /** Bytes of the prompt that a node has probably read before. */
  readonly hits: ReadonlyMap<NodeId, number>;
  readonly nowMs: number;
}

/**
 * Pure: every node of the view and this one, each with what speaks against it. Nothing is left out, so all can be
 * explained.
 */
export function candidatesFor(
  question: Question,
  self: SelfFacts,
  view: View,
  reach: ReadonlyMap<NodeId, Reach>,
): readonly Candidate[] {
  const candidates = [describe(question, self.beat, self, {...ownStanding, reach: reach.get(self.beat.node)})];
  for (const known of view.nodes.values()) {
    candidates.push(
      describe(question, known.beat, known.inventory ?? noInventory, {
        isSelf: false,
        reach: reach.get(known.beat.node),
        ageMs: Math.max(0, question.nowMs - known.madeAtMs),
        alive: isAlive(known, question.nowMs),
      }),
    );
  }
  return candidates;
}

interface Standing {
  readonly isSelf: boolean;
  readonly reach: Reach | undefined;
  readonly ageMs: number;
  readonly alive: boolean;
}

const ownStanding: Standing = {isSelf: true, reach: undefined, ageMs: 0, alive: true};
const noInventory: Omit<SelfFacts, 'beat'> = {models: []};

function describe(
  question: Question,
  beat: Beat,
  {models, hardware, contextMax}: Omit<SelfFacts, 'beat'>,
  standing: Standing,
): Candidate {
  const {isSelf, reach, ageMs} = standing;
  const index = inventoryIndex(models);
  const model = firstAccepted(question.digests, index, isSelf);
  const engine = model && beat.engines.find(({digest}) => digest === model.digest);
  const {placement} = question.policy;
  const named = placement.kind !== 'auto' && placement.nodes.some(text => isNamed(beat, text, isSelf));
  const room = roomFor(beat, engine ? undefined : model, index);
  return {
    node: beat.node,
    name: beat.name,
    self: isSelf,
    exclusion: exclude(question, beat, model, standing, named, engine !== undefined),
    digest: model?.digest,
    state: engine?.readiness ?? (model ? 'stored' : 'absent'),
    preferred: placement.kind === 'prefer' && named,
    ageMs,
    slots: engine?.slots ?? 0,
    busy: engine?.busy ?? 0,
    freeSlots: engine ? Math.max(0, engine.slots - engine.busy - engine.queued) : 0,
    queued: engine?.queued ?? 0,
    waitMs: engine?.waitMs ?? 0,
    running: runningOn(beat),
    ownOffers: reach?.ownOffers ?? 0,
    sizeBytes: model?.sizeBytes ?? 0,
    contextTokens: engine?.context ?? slotContext(model, contextMax),
    roomBytes: room.bytes,
    hasRoom: room.suffices,
    evictSeconds: room.evictSeconds,
    roundTripMs: isSelf ? 0 : reach?.roundTripMs,
    relayed: reach?.relayed ?? false,
    failures: reach?.failures ?? 0,
    learned: model?.learned,
    likely: model && model.learned === undefined ? index.likely(model, hardware) : undefined,
    hitBytes: question.hits.get(beat.node) ?? 0,
    missingBytes: model && Math.max(0, model.needBytes - beat.memory.totalBytes),
  };
}

/** Of an engine that is not loaded yet. */
function slotContext(model: ModelFacts | undefined, contextMax: number | undefined): number | undefined {
  if (!model || contextMax === undefined) return undefined;
  return model.contextMax > 0 ? Math.min(model.contextMax, contextMax) : contextMax;
}

/** The filters, in the stated order; each alone can exclude a node (S67). */
function exclude(
  question: Question,
  beat: Beat,
  model: ModelFacts | undefined,
  standing: Standing,
  named: boolean,
  loaded: boolean,
): Exclusion | undefined {
  const isMeant = (text: string): boolean => isNamed(beat, text, standing.isSelf);
  if (question.allowedNodes && !question.allowedNodes.some(isMeant)) return 'not authorized';
  const {placement, exclude: spared} = question.policy;
  if (placement.kind === 'pin' && !named) return 'policy';
  if (spared.some(isMeant)) return 'policy';
  if (!standing.isSelf && !standing.reach) return 'not connected';
  if (!standing.alive) return 'stale';
  if (question.tried.has(beat.node)) return 'tried';
  if (question.busy.has(beat.node)) return 'busy';
  if (standing.reach && standing.reach.quarantinedUntilMs > question.nowMs) return 'quarantined';
  if (beat.flags.draining) return 'draining';
  if (beat.flags.paused) return 'paused';
  if (!model) return 'artifact';
  if (!question.needs.every(need => model.capabilities.includes(need))) return 'capability';
  if (!loaded && beat.memory.totalBytes > 0 && model.needBytes > beat.memory.totalBytes) return 'too large';
  return undefined;
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

/**
 * People may write a node's name, its whole id, or the last characters of the id that lists show; `local` is this
 * node.
 */
export function isNamed(
  beat: {readonly node: string; readonly name: string},
  written: string,
  isSelf: boolean,
): boolean {
  const word = written.toLowerCase();
  if (isSelf && word === 'local') return true;
  return (
    beat.name.toLowerCase() === word || beat.node === written || (written.length >= 8 && beat.node.endsWith(written))
  );
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
