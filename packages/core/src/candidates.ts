import type {Digest, NodeId} from './ids.ts';
import type {Likely} from './inventory-index.ts';
import type {LearnedFacts} from './learned.ts';
import type {Capability, ModelFacts} from './model.ts';
import {nodeFacts, nodeFactsFor} from './node-facts.ts';
import type {NodeFacts} from './node-facts.ts';
import type {Policy} from './policy.ts';
import type {Entry} from './rank-order.ts';
import type {Beat, HardwareFacts} from './record.ts';
import {isAlive} from './view.ts';
import type {KnownNode, View} from './view.ts';

/** Why a node is not asked. In the order in which the filters are applied (design §4); the last comes from ranking. */
export type Exclusion =
  | 'not authorized'
  | 'policy'
  | 'role'
  | 'not connected'
  | 'quarantined'
  | 'stale'
  | 'draining'
  | 'paused'
  | 'battery'
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
  /** Charge of its battery, 0…1, while it runs on it. */
  readonly batteryShare?: number | undefined;
  readonly isHot?: boolean | undefined;
  /** What the node has measured of this model. */
  readonly learned: LearnedFacts | undefined;
  /** What its other models let expect of this one. */
  readonly likely: Likely | undefined;
  /** What machines of its kind do; told also where more is known, since a guess is only good beside other guesses. */
  readonly guess?: Likely | undefined;
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
  /** This node only serves. */
  readonly asksNobody?: boolean;
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
): readonly Entry[] {
  const own = nodeFacts(question, self.beat, self, true);
  const candidates: Entry[] = [new LiveCandidate(question, own, undefined, reach.get(self.beat.node))];
  const factsOf = nodeFactsFor(question);
  for (const known of view.nodes.values()) {
    candidates.push(new LiveCandidate(question, factsOf(known), known, reach.get(known.beat.node)));
  }
  return candidates;
}

/**
 * A candidate that looks its facts up where they lie: there are as many of these a request as nodes, and copying thirty
 * facts for each took longer than all the rest of choosing.
 */
class LiveCandidate implements Entry {
  exclusion: Exclusion | undefined;
  seconds = Infinity;
  group = 0;
  readonly preferred: boolean;
  readonly #question: Question;
  readonly #facts: NodeFacts;
  /** Undefined: this node. */
  readonly #known: KnownNode | undefined;
  readonly #reach: Reach | undefined;

  constructor(question: Question, facts: NodeFacts, known: KnownNode | undefined, reach: Reach | undefined) {
    this.#question = question;
    this.#facts = facts;
    this.#known = known;
    this.#reach = reach;
    const {placement} = question.policy;
    const isNamedOne = placement.kind !== 'auto' && isAmong(placement.nodes, facts.beat, known === undefined);
    this.preferred = isNamedOne && placement.kind === 'prefer';
    this.exclusion = exclude(question, facts, known, reach, isNamedOne);
  }

  get node(): NodeId {
    return this.#facts.beat.node;
  }
  get name(): string {
    return this.#facts.beat.name;
  }
  get self(): boolean {
    return this.#known === undefined;
  }
  get digest(): Digest | undefined {
    return this.#facts.model?.digest;
  }
  get state(): Candidate['state'] {
    return this.#facts.state;
  }
  get ageMs(): number {
    return this.#known === undefined ? 0 : Math.max(0, this.#question.nowMs - this.#known.madeAtMs);
  }
  get slots(): number {
    return this.#facts.engine?.slots ?? 0;
  }
  get busy(): number {
    return this.#facts.engine?.busy ?? 0;
  }
  get freeSlots(): number {
    const {engine} = this.#facts;
    return engine ? Math.max(0, engine.slots - engine.busy - engine.queued) : 0;
  }
  get queued(): number {
    return this.#facts.engine?.queued ?? 0;
  }
  get waitMs(): number {
    return this.#facts.engine?.waitMs ?? 0;
  }
  get running(): number {
    return this.#facts.running;
  }
  get ownOffers(): number {
    return this.#reach?.ownOffers ?? 0;
  }
  get sizeBytes(): number {
    return this.#facts.model?.sizeBytes ?? 0;
  }
  get contextTokens(): number | undefined {
    return this.#facts.contextTokens;
  }
  get roomBytes(): number {
    return this.#facts.roomBytes;
  }
  get missingBytes(): number | undefined {
    const {beat, model} = this.#facts;
    return model && Math.max(0, model.needBytes - beat.memory.totalBytes);
  }
  get hasRoom(): boolean {
    return this.#facts.hasRoom;
  }
  get evictSeconds(): number {
    return this.#facts.evictSeconds;
  }
  get roundTripMs(): number | undefined {
    return this.#known === undefined ? 0 : this.#reach?.roundTripMs;
  }
  get relayed(): boolean {
    return this.#reach?.relayed ?? false;
  }
  get failures(): number {
    return this.#reach?.failures ?? 0;
  }
  get batteryShare(): number | undefined {
    return this.#facts.beat.flags.batteryShare;
  }
  get isHot(): boolean | undefined {
    return this.#facts.beat.flags.isHot;
  }
  get learned(): LearnedFacts | undefined {
    return this.#facts.model?.learned;
  }
  get likely(): Likely | undefined {
    return this.#facts.likely;
  }
  get guess(): Likely | undefined {
    return this.#facts.guess;
  }
  get hitBytes(): number {
    const {hits} = this.#question;
    return hits.size === 0 ? 0 : (hits.get(this.#facts.beat.node) ?? 0);
  }
}

/** The filters, in the stated order; each alone can exclude a node (S67). */
function exclude(
  question: Question,
  facts: NodeFacts,
  known: KnownNode | undefined,
  reach: Reach | undefined,
  isNamedOne: boolean,
): Exclusion | undefined {
  const {allowedNodes, policy, tried, busy, nowMs} = question;
  const {beat} = facts;
  const isSelf = known === undefined;
  if (allowedNodes && !isAmong(allowedNodes, beat, isSelf)) return 'not authorized';
  if (policy.placement.kind === 'pin' && !isNamedOne) return 'policy';
  if (policy.exclude.length > 0 && isAmong(policy.exclude, beat, isSelf)) return 'policy';
  if (!isSelf && question.asksNobody === true) return 'role';
  if (!isSelf && !reach) return 'not connected';
  if (known && !isAlive(known, nowMs)) return 'stale';
  if (tried.size > 0 && tried.has(beat.node)) return 'tried';
  if (busy.size > 0 && busy.has(beat.node)) return 'busy';
  if (reach && reach.quarantinedUntilMs > nowMs) return 'quarantined';
  return facts.exclusion;
}

function isAmong(words: readonly string[], beat: Beat, isSelf: boolean): boolean {
  return words.some(word => isNamed(beat, word, isSelf));
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
