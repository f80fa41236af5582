import {isProven} from './ids.ts';
import type {Digest, NodeId} from './ids.ts';
import type {Capability, ModelFacts} from './model.ts';
import type {Policy} from './policy.ts';
import type {Beat} from './record.ts';
import {isAlive} from './view.ts';
import type {View} from './view.ts';

/** Why a node is not asked. In the order in which the filters are applied (design §4). */
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
  | 'tried';

/** What this node itself knows of its way to another. Never gossiped. */
export interface Reach {
  readonly roundTripMs: number | undefined;
  /** After failed offers: not asked before this moment, unless nobody else is left. */
  readonly quarantinedUntilMs: number;
}

/** One node as it stands for one request. */
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
  readonly freeSlots: number;
  readonly queued: number;
  readonly waitMs: number;
  /** Memory that its models may use less the weights of what is loaded; never negative (S27). */
  readonly roomBytes: number;
  /** For a model that is too large: what is missing even when nothing else is loaded. */
  readonly missingBytes?: number | undefined;
  readonly roundTripMs: number;
}

/** This node, which needs no gossip to know itself; the same shape as what it tells others. */
export interface SelfFacts {
  readonly beat: Beat;
  /** With models still unproven: they serve what enters here. */
  readonly models: readonly ModelFacts[];
}

export interface Question {
  readonly digests: readonly Digest[];
  readonly needs: readonly Capability[];
  readonly policy: Policy;
  /** Nodes that the application's key allows; undefined: all. */
  readonly allowedNodes?: readonly string[] | undefined;
  /** Nodes that have answered this request already, with something other than yes. */
  readonly tried: ReadonlySet<NodeId>;
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
  const own = describe(question, self.beat, self.models, {isSelf: true, reach: undefined, alive: true});
  const others = [...view.nodes.values()].map(known =>
    describe(question, known.beat, known.inventory?.models ?? [], {
      isSelf: false,
      reach: reach.get(known.beat.node),
      alive: isAlive(known, question.nowMs),
    }),
  );
  return [own, ...others];
}

interface Standing {
  readonly isSelf: boolean;
  readonly reach: Reach | undefined;
  readonly alive: boolean;
}

function describe(question: Question, beat: Beat, models: readonly ModelFacts[], standing: Standing): Candidate {
  const {isSelf} = standing;
  const model = firstAccepted(question.digests, models, isSelf);
  const engine = beat.engines.find(({digest}) => digest === model?.digest);
  const {placement} = question.policy;
  const named = placement.kind !== 'auto' && placement.nodes.some(text => isNamed(beat, text, isSelf));
  return {
    node: beat.node,
    name: beat.name,
    self: isSelf,
    exclusion: exclude(question, beat, model, {...standing, named}),
    digest: model?.digest,
    state: engine?.readiness ?? (model ? 'stored' : 'absent'),
    preferred: placement.kind === 'prefer' && named,
    freeSlots: engine ? Math.max(0, engine.slots - engine.busy - engine.queued) : 0,
    queued: engine?.queued ?? 0,
    waitMs: engine?.waitMs ?? 0,
    roomBytes: roomOf(beat),
    missingBytes: model && Math.max(0, model.needBytes - beat.memory.totalBytes),
    roundTripMs: isSelf ? 0 : (standing.reach?.roundTripMs ?? 0),
  };
}

/** The filters, in the stated order; each alone can exclude a node (S67). */
function exclude(
  question: Question,
  beat: Beat,
  model: ModelFacts | undefined,
  standing: Standing & {readonly named: boolean},
): Exclusion | undefined {
  const isMeant = (text: string): boolean => isNamed(beat, text, standing.isSelf);
  if (question.allowedNodes && !question.allowedNodes.some(isMeant)) return 'not authorized';
  const {placement, exclude: spared} = question.policy;
  if (placement.kind === 'pin' && !standing.named) return 'policy';
  if (spared.some(isMeant)) return 'policy';
  if (!standing.isSelf && !standing.reach) return 'not connected';
  if (!standing.alive) return 'stale';
  if (question.tried.has(beat.node)) return 'tried';
  if (standing.reach && standing.reach.quarantinedUntilMs > question.nowMs) return 'quarantined';
  if (beat.flags.draining) return 'draining';
  if (beat.flags.paused) return 'paused';
  if (!model) return 'artifact';
  if (!question.needs.every(need => model.capabilities.includes(need))) return 'capability';
  const loaded = beat.engines.some(({digest}) => digest === model.digest);
  if (!loaded && beat.memory.totalBytes > 0 && model.needBytes > beat.memory.totalBytes) return 'too large';
  return undefined;
}

function firstAccepted(
  digests: readonly Digest[],
  models: readonly ModelFacts[],
  isSelf: boolean,
): ModelFacts | undefined {
  for (const digest of digests) {
    if (!isSelf && !isProven(digest)) continue;
    const model = models.find(({digest: stored}) => stored === digest);
    if (model) return model;
  }
  return undefined;
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

function roomOf(beat: Beat): number {
  const loaded = beat.engines.reduce((sum, {sizeBytes}) => sum + sizeBytes, 0);
  return Math.max(0, beat.memory.totalBytes - loaded);
}
