import type {NodeId, Ranked} from '@hearsay/core';
import {clusters} from './hardware.ts';
import type {ClusterName} from './hardware.ts';
import {SimEntry} from './sim-entry.ts';
import type {PrefixKnowledge} from './sim-entry.ts';
import {simpleRules} from './simple-rules.ts';
import type {SimpleRule} from './simple-rules.ts';
import {SimNode} from './sim-node.ts';
import type {SimWorld} from './sim-node.ts';
import type {SimRequest} from './sim-request.ts';
import {chance, Timeline} from './timeline.ts';
import type {Chance} from './timeline.ts';
import {startSessions} from './workload.ts';

type Rule = 'cost' | 'perfect' | 'seed' | SimpleRule;

export interface Scenario {
  readonly cluster: ClusterName;
  readonly rule: Rule;
  /** Requests a second, over all nodes. */
  readonly rate: number;
  readonly seconds: number;
  readonly seed: number;
  /** Sigma of what machines guess of their own speed; undefined: nothing, until they have measured it. */
  readonly guessError?: number;
  readonly gossipSeconds?: number;
  readonly prefix?: PrefixKnowledge;
  /** How often a turn of a conversation enters where the last one did. */
  readonly loyalty?: number;
  /** Model that everybody asks for, instead of all. */
  readonly only?: number;
  /** Models that are loaded at the start: [node, model]. */
  readonly preload?: readonly (readonly [number, number])[];
  /** Nodes that sleep for a while: [node, from, to]. */
  readonly asleep?: readonly (readonly [number, number, number])[];
}

export interface Outcome {
  readonly done: number;
  readonly unfinished: number;
  /** Seconds, of requests after the warm-up. */
  readonly firstBytes: readonly number[];
  readonly completions: readonly number[];
  readonly tokensPerSecond: number;
  readonly hitShare: number;
  readonly loads: number;
  readonly busyPerRequest: number;
  /** Offers to nodes that were asleep. */
  readonly lostOffers: number;
  readonly interrupted: number;
}

const warmUpSeconds = 300;
const roundTripSeconds = 0.003;
/** As the mesh: how long it takes to see that a stream does not open, and that one has gone silent. */
const openSeconds = 1.5;
const silentSeconds = 5.5;
const busyOffersMax = 3;
const sketchSeconds = 15;

/** Runs one scenario to its end. The same scenario gives the same outcome, to the last bit. */
export function simulate(scenario: Scenario): Outcome {
  return new World(scenario).run();
}

/** Everything there is: machines, what they know of each other, and requests on their way. */
class World {
  readonly #scenario: Scenario;
  readonly #timeline = new Timeline();
  readonly #next: Chance;
  readonly #nodes: readonly SimNode[];
  readonly #entries: readonly SimEntry[];
  readonly #where = new Map<SimRequest, number>();
  readonly #tried = new Map<SimRequest, Set<NodeId>>();
  readonly #done: SimRequest[] = [];
  readonly #ttlMs: number;
  #arrived = 0;
  #busy = 0;
  #lostOffers = 0;
  #interrupted = 0;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#next = chance(scenario.seed);
    this.#ttlMs = 3000 * (scenario.gossipSeconds ?? 2) + 1000;
    const world: SimWorld = {
      timeline: this.#timeline,
      next: this.#next,
      ending: {finished: request => this.#finished(request), changed: () => undefined},
      guessError: scenario.guessError,
      knowsAll: scenario.rule === 'perfect',
    };
    this.#nodes = clusters[scenario.cluster].map((machine, index) => new SimNode(index, machine, world));
    this.#entries = this.#nodes.map(({index}) => new SimEntry(index, this.#nodes, 1000 * roundTripSeconds));
  }

  run(): Outcome {
    const {seconds, preload = [], asleep = []} = this.#scenario;
    for (const [node, model] of preload) this.#nodes[node]?.preload(model);
    for (const node of this.#nodes) {
      for (const entry of this.#entries) this.#tellFresh(node, entry);
      this.#gossip(node);
    }
    for (const [node, from, to] of asleep) {
      this.#timeline.in(from, () => this.#sleep(node));
      this.#timeline.in(to, () => this.#nodes[node]?.wake());
    }
    startSessions({...this.#scenario, nodes: this.#nodes.length}, this.#timeline, request => this.#arrive(request));
    this.#timeline.runUntil(seconds);
    return this.#outcome();
  }

  #gossip(node: SimNode): void {
    const period = this.#scenario.gossipSeconds ?? 2;
    const beat = (): void => {
      if (node.isUp) this.#publish(node);
      this.#timeline.in(period * (0.9 + 0.2 * this.#next()), beat);
    };
    this.#timeline.in(this.#next() * period, beat);
    if (this.#scenario.prefix !== 'sketches') return;
    const sketch = (): void => {
      for (const {model, cache} of node.engines.values()) {
        const copy = new Map(cache);
        for (const entry of this.#entries) entry.hearSketch(node, model, copy);
      }
      this.#timeline.in(sketchSeconds, sketch);
    };
    this.#timeline.in(this.#next() * sketchSeconds, sketch);
  }

  #publish(node: SimNode): void {
    const beat = node.beat(this.#ttlMs);
    const madeAtMs = 1000 * this.#timeline.now;
    for (const entry of this.#entries) {
      this.#timeline.in(0.1 * (0.3 + 1.4 * this.#next()), () => entry.hear(node, beat, madeAtMs));
    }
  }

  /** With an answer, or for a rule that knows everything. */
  #tellFresh(node: SimNode, entry: SimEntry): void {
    entry.hear(node, node.beat(this.#ttlMs), 1000 * this.#timeline.now);
  }

  #arrive(request: SimRequest): void {
    this.#arrived += 1;
    this.#tried.set(request, new Set());
    this.#route(request);
  }

  #route(request: SimRequest): void {
    const entry = this.#entries[request.entry];
    if (!entry) throw new RangeError('a request that entered nowhere');
    const {rule} = this.#scenario;
    if (rule === 'cost' || rule === 'perfect' || rule === 'seed') {
      this.#offer(request, entry, {busy: new Map()});
      return;
    }
    const able = this.#nodes.filter(({isUp, machine}) => isUp && machine.models.includes(request.model));
    const chosen = simpleRules[rule](able, request, entry, this.#next);
    if (chosen) this.#send(request, entry, chosen);
    else this.#timeline.in(1, () => this.#route(request));
  }

  /** As `dispatch`: at most three busy answers, then by force where the wait is shortest. */
  #offer(request: SimRequest, entry: SimEntry, asking: {readonly busy: Map<NodeId, number>}): void {
    const {rule, prefix = 'own'} = this.#scenario;
    if (rule !== 'cost') for (const node of this.#nodes) if (node.isUp) this.#tellFresh(node, entry);
    const {busy} = asking;
    const ranked = entry.order(request, {
      spread: rule === 'seed' ? 'off' : 'auto',
      prefix: rule === 'perfect' ? 'exact' : prefix,
      tried: this.#tried.get(request) ?? new Set(),
      busy: new Set(busy.keys()),
      nowMs: 1000 * this.#timeline.now,
    });
    const best = busy.size < busyOffersMax ? ranked.find(({place}) => place === 0) : undefined;
    const [shortest] = [...busy].toSorted(([, a], [, b]) => a - b);
    const id = best?.node ?? shortest?.[0];
    const node = this.#nodes.find(one => one.id === id);
    if (!node) {
      this.#tried.get(request)?.clear();
      this.#timeline.in(0.5, () => this.#offer(request, entry, {busy: new Map()}));
      return;
    }
    const reach = entry.reach.get(node.id);
    if (reach) reach.ownOffers += 1;
    const oneWay = node.index === entry.index ? 0.00015 : roundTripSeconds / 2;
    this.#timeline.in(oneWay, () => {
      if (!node.isUp) return this.#unanswered(request, entry, node, busy);
      const expected = best ? expectedWait(best) : Infinity;
      const isTaken =
        node.hasSlot(request.model) || node.wait(request.model) <= 1.5 * expected + (expected > 0 ? 1 : 0);
      const isLoaded = node.engines.has(request.model) || node.hasRoom(request.model);
      const accepts = !best || (isTaken && isLoaded);
      if (accepts) this.#begin(request, node);
      else this.#busy += 1;
      const wait = node.wait(request.model);
      this.#timeline.in(oneWay, () => {
        if (reach) reach.ownOffers -= 1;
        if (node.isUp) this.#tellFresh(node, entry);
        if (accepts) entry.sent(request, node.index);
        else this.#offer(request, entry, {busy: busy.set(node.id, wait)});
      });
    });
  }

  #unanswered(request: SimRequest, entry: SimEntry, node: SimNode, busy: Map<NodeId, number>): void {
    this.#lostOffers += 1;
    this.#timeline.in(openSeconds, () => {
      this.#noteFailure(entry, node);
      const reach = entry.reach.get(node.id);
      if (reach) reach.ownOffers -= 1;
      this.#tried.get(request)?.add(node.id);
      this.#offer(request, entry, {busy});
    });
  }

  #noteFailure(entry: SimEntry, node: SimNode): void {
    const reach = entry.reach.get(node.id);
    if (!reach) return;
    reach.failures += 1;
    reach.quarantinedUntilMs = 1000 * this.#timeline.now + Math.min(60_000, 500 * 2 ** (reach.failures - 1));
  }

  #send(request: SimRequest, entry: SimEntry, node: SimNode): void {
    entry.outstanding[node.index] = (entry.outstanding[node.index] ?? 0) + 1;
    this.#timeline.in(roundTripSeconds / 2, () => {
      if (node.isUp) this.#begin(request, node);
      else this.#timeline.in(openSeconds, () => this.#route(request));
    });
  }

  #begin(request: SimRequest, node: SimNode): void {
    this.#where.set(request, node.index);
    const reach = this.#entries[request.entry]?.reach.get(node.id);
    if (reach) reach.failures = 0;
    node.submit(request);
  }

  #finished(request: SimRequest): void {
    const node = this.#nodes[this.#where.get(request) ?? -1];
    const entry = this.#entries[request.entry];
    this.#tried.delete(request);
    this.#where.delete(request);
    this.#done.push(request);
    this.#completions.push(this.#timeline.now - request.arrivedAt);
    if (node && entry) {
      entry.outstanding[node.index] = (entry.outstanding[node.index] ?? 0) - 1;
      this.#timeline.in(0, () => this.#tellFresh(node, entry));
    }
    request.onEnd();
  }

  readonly #completions: number[] = [];

  #sleep(index: number): void {
    const node = this.#nodes[index];
    for (const request of node?.sleep() ?? []) {
      const entry = this.#entries[request.entry];
      if (!node || !entry) continue;
      this.#timeline.in(silentSeconds, () => {
        this.#noteFailure(entry, node);
        if (request.firstAt === undefined) {
          this.#tried.get(request)?.add(node.id);
          this.#route(request);
        } else this.#interrupted += 1; // output has begun: nobody else may run it
      });
    }
  }

  #outcome(): Outcome {
    const counted = this.#done.filter(({arrivedAt}) => arrivedAt >= warmUpSeconds);
    const isCounted = this.#done.map(({arrivedAt}) => arrivedAt >= warmUpSeconds);
    const sum = (value: (request: SimRequest) => number): number =>
      counted.reduce((total, request) => total + value(request), 0);
    return {
      done: counted.length,
      unfinished: this.#arrived - this.#done.length - this.#interrupted,
      firstBytes: counted.map(({firstAt = 0, arrivedAt}) => firstAt - arrivedAt),
      completions: this.#completions.filter((_, index) => isCounted[index]),
      tokensPerSecond: sum(({output}) => output) / (this.#scenario.seconds - warmUpSeconds),
      hitShare:
        sum(({hit}) => hit) /
        Math.max(
          1,
          sum(({prompt}) => prompt),
        ),
      loads: this.#nodes.reduce((total, {loads}) => total + loads, 0),
      busyPerRequest: this.#busy / Math.max(1, this.#arrived),
      lostOffers: this.#lostOffers,
      interrupted: this.#interrupted,
    };
  }
}

function expectedWait({cost}: Ranked): number {
  return cost ? cost.terms.model + cost.terms.queue : 0;
}
