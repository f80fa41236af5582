import {automatic, candidatesFor, rank} from '@hearsay/core';
import type {KnownNode, NodeId, Ranked, Reach, SelfFacts, Spread, View} from '@hearsay/core';
import {digestOf} from './sim-facts.ts';
import type {SimNode} from './sim-node.ts';
import type {SimRequest} from './sim-request.ts';

/** How a node knows who has read a prompt before. */
export type PrefixKnowledge = 'none' | 'own' | 'sketches' | 'exact';

interface MutableReach extends Reach {
  quarantinedUntilMs: number;
  failures: number;
  ownOffers: number;
}

/** What one node knows of the others, and by what it chooses: the real `rank` over what it has heard. */
export class SimEntry {
  readonly index: number;
  readonly reach: ReadonlyMap<NodeId, MutableReach>;
  /** Requests on their way or running that entered here, for rules that count them. */
  readonly outstanding: number[];
  turn = 0;
  readonly #nodes: readonly SimNode[];
  readonly #known = new Map<NodeId, KnownNode>();
  readonly #view: View = {nodes: this.#known, stamps: new Map()};
  readonly #sessions = new Map<string, {readonly node: number; readonly tokens: number}>();
  readonly #apps = new Set<string>();
  readonly #sketches: (ReadonlyMap<string, number> | undefined)[][] = [];

  constructor(index: number, nodes: readonly SimNode[], roundTripMs: number) {
    this.index = index;
    this.#nodes = nodes;
    this.outstanding = nodes.map(() => 0);
    this.reach = new Map(
      nodes
        .filter(node => node.index !== index)
        .map(({id}) => [id, {roundTripMs, relayed: false, quarantinedUntilMs: -Infinity, failures: 0, ownOffers: 0}]),
    );
  }

  /** A record has come, as the node was when it made it. */
  hear(node: SimNode, beat: KnownNode['beat'], madeAtMs: number): void {
    if (node.index === this.index) return;
    const known = this.#known.get(node.id);
    if (known && known.beat.sequence >= beat.sequence) return;
    this.#known.set(node.id, {beat, signed: unsigned(node.id), madeAtMs, inventory: inventoryOf(node)});
  }

  hearSketch(node: SimNode, model: number, sketch: ReadonlyMap<string, number>): void {
    (this.#sketches[node.index] ??= [])[model] = sketch;
  }

  order(request: SimRequest, how: Choosing): readonly Ranked[] {
    const own = this.#nodes[this.index];
    if (!own) throw new RangeError('an entry without a node');
    const self: SelfFacts = {beat: own.beat(0), models: own.models, hardware: own.hardware};
    const hits = new Map<NodeId, number>();
    for (const node of this.#nodes) {
      const tokens = this.#hit(node, request, how.prefix);
      if (tokens > 0) hits.set(node.id, 4 * tokens);
    }
    const question = {
      digests: [digestOf(request.model)],
      needs: ['chat' as const],
      policy: automatic,
      tried: how.tried,
      busy: how.busy,
      hits,
      nowMs: how.nowMs,
    };
    const asked = {
      request: String(request.id),
      spread: how.spread,
      promptBytes: 4 * request.prompt,
      maxTokens: undefined,
    };
    return rank(candidatesFor(question, self, this.#view, this.reach), asked);
  }

  /** The node has taken it, so that it will have read the prompt. */
  sent(request: SimRequest, node: number): void {
    this.#sessions.set(sessionKey(request), {node, tokens: request.prompt + request.output});
    this.#apps.add(`${request.app} ${request.model} ${node}`);
  }

  #hit(node: SimNode, request: SimRequest, prefix: PrefixKnowledge): number {
    if (prefix === 'none') return 0;
    if (prefix === 'exact') return node.known(request);
    const isReady = node.engines.get(request.model)?.isReady === true;
    if (!isReady) return 0;
    const session = this.#sessions.get(sessionKey(request));
    const inSession = session?.node === node.index ? Math.min(request.history, session.tokens) : 0;
    const inApp = this.#apps.has(`${request.app} ${request.model} ${node.index}`) ? request.system : 0;
    const sketch = prefix === 'sketches' ? this.#sketches[node.index]?.[request.model] : undefined;
    const inSketch = Math.min(request.history, sketch?.get(`s${request.session}`) ?? 0);
    return Math.max(inSession, inApp, inSketch);
  }
}

export interface Choosing {
  readonly spread: Spread;
  readonly prefix: PrefixKnowledge;
  readonly tried: ReadonlySet<NodeId>;
  readonly busy: ReadonlySet<NodeId>;
  readonly nowMs: number;
}

function sessionKey({session, model}: SimRequest): string {
  return `${session} ${model}`;
}

function inventoryOf({models, hardware}: SimNode): KnownNode['inventory'] {
  return {digest: '', models, ...(hardware ? {hardware} : {})};
}

const signatures = new Map<NodeId, KnownNode['signed']>();

function unsigned(node: NodeId): KnownNode['signed'] {
  let signed = signatures.get(node);
  if (!signed) signatures.set(node, (signed = {node, payload: new Uint8Array(), signature: new Uint8Array()}));
  return signed;
}
