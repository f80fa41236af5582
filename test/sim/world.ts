import {createHash} from 'node:crypto';
import {joinCluster} from '@hearsay/cluster';
import {automatic, Fault, newRequestId} from '@hearsay/core';
import type {Cluster, Environment, Mesh, NodeId, RequestId, StoredModel} from '@hearsay/core';
import {memoryNetwork} from '@hearsay/mesh';
import type {MemoryNetwork} from '@hearsay/mesh';
import {dice} from '../../scripts/load/dice.ts';
import type {Dice} from '../../scripts/load/dice.ts';
import {manualClock} from '../support/manual-clock.ts';
import type {ManualClock} from '../support/manual-clock.ts';
import {Rules} from './rules.ts';
import {stored, storeOf} from './sim-store.ts';
import {sameForAll} from './same-for-all.ts';
import {SimEngines} from './sim-engines.ts';
import {SimJournal} from './sim-journal.ts';
import type {Run} from './sim-engines.ts';

/** What became of one simulation. Two with one seed are equal to the letter. */
export interface SimReport {
  /** Broken rules, in words. */
  readonly broken: readonly string[];
  /** Everything that happened, in its order. */
  readonly events: readonly string[];
  /** How many requests ended in which way. */
  readonly outcomes: ReadonlyMap<string, number>;
}

export interface SimOptions {
  readonly seed: number;
  /** Virtual seconds with requests and faults; then comes a quiet time in which everything must end. */
  readonly seconds: number;
}

const stepMs = 500;
/** Nodes need this long to hear of each other; later unknown names are answered at once. */
const warmUpMs = 4000;
const quietMs = 20_000;

interface SimAsk {
  readonly id: RequestId;
  readonly name: string;
  readonly tokens: number;
  /** When the client goes away; undefined: it stays. */
  readonly leave: number | undefined;
}

interface SimNode {
  readonly name: string;
  readonly mesh: Mesh;
  readonly cluster: Cluster;
  readonly engines: SimEngines;
  readonly journal: SimJournal;
}

/** Runs five to twenty whole nodes under a virtual clock, with requests and faults from a seed. */
export async function simulate({seed, seconds}: SimOptions): Promise<SimReport> {
  const world = new World(seed);
  await world.start();
  await world.pass(warmUpMs);
  for (let step = 0; step < (seconds * 1000) / stepMs; step += 1) {
    await world.act();
    await world.pass(stepMs);
  }
  await world.calm();
  await world.pass(quietMs);
  world.checkEnd();
  await world.stop();
  return {broken: world.broken, events: world.events, outcomes: world.outcomes};
}

class World {
  readonly events: string[] = [];
  readonly outcomes = new Map<string, number>();
  readonly #clock: ManualClock = manualClock();
  readonly #dice: Dice;
  readonly #environment: Environment;
  readonly #network: MemoryNetwork;
  readonly #nodes = new Map<string, SimNode>();
  readonly #boots = new Map<string, number>();
  readonly #holdings = new Map<string, readonly StoredModel[]>();
  readonly #rules = new Rules(() => this.#clock.monotonicMs());
  readonly #runs: Run[] = [];
  readonly #entries = new Map<string, NodeId>();
  #open = 0;

  get broken(): readonly string[] {
    return this.#rules.broken;
  }

  constructor(seed: number) {
    this.#dice = dice(seed);
    let bytes = seed;
    this.#environment = {
      clock: this.#clock,
      random: {
        next: () => this.#dice.next(),
        bytes: length =>
          createHash('sha512')
            .update(`${(bytes += 1)}`)
            .digest()
            .subarray(0, length),
      },
      log: () => undefined,
    };
    this.#network = memoryNetwork(this.#environment, {seed, delayMs: 20, lossRate: 0.05});
  }

  async start(): Promise<void> {
    const count = this.#dice.between(5, 20);
    for (let index = 0; index < count; index += 1) {
      const name = `n${index}`;
      const models = ['a', 'b', 'c'].filter((_, nth) => nth === index % 3 || this.#dice.next() < 0.3);
      this.#holdings.set(name, models.map(stored));
      await this.#startNode(name);
    }
  }

  async #startNode(name: string): Promise<void> {
    const boot = (this.#boots.get(name) ?? 0) + 1;
    this.#boots.set(name, boot);
    const mesh = this.#watched(this.#network.mesh(name));
    const engines = new SimEngines(name, this.#clock, this.#runs);
    const models = storeOf(this.#holdings.get(name) ?? []);
    const config = {...sameForAll, nodeName: name, boot};
    const journal = new SimJournal(words => this.#rules.breach(`${name}: ${words}`));
    const operatorStore = {read: async () => undefined, write: async () => undefined};
    const parts = {mesh, engines, models, journal, operatorStore};
    const cluster = await joinCluster(config, {...this.#environment, ...parts});
    this.#nodes.set(name, {name, mesh, cluster, engines, journal});
  }

  /** Law 1: only the entry of a request may offer it to others; asking who loads a model passes nothing on. */
  #watched(mesh: Mesh): Mesh {
    const {self} = mesh;
    return {
      self,
      addresses: () => mesh.addresses(),
      serve: async handlers => mesh.serve(handlers),
      sign: async payload => mesh.sign(payload),
      publish: async record => mesh.publish(record),
      inventory: async (peer, signal) => mesh.inventory(peer, signal),
      control: async (peer, request, signal) => mesh.control(peer, request, signal),
      links: () => mesh.links(),
      worker: peer => ({
        node: peer,
        offer: async (request, signal) => {
          const entry = this.#entries.get(request.request);
          if (entry !== self && request.claim !== true)
            this.#rules.breach(`law 1: a node passed on request ${request.request}`);
          const isClaim = request.claim === true; // a question of its own about a load, and no request of a client
          if (entry !== self && !isClaim) this.#rules.breach(`law 1: a node passed on request ${request.request}`);
          return mesh.worker(peer).offer(request, signal);
        },
      }),
      [Symbol.asyncDispose]: async () => mesh[Symbol.asyncDispose](),
    };
  }

  /** One step of a busy and unlucky day. */
  async act(): Promise<void> {
    for (let asked = this.#dice.between(0, 3); asked > 0; asked -= 1) this.#ask();
    const chance = this.#dice.next();
    if (chance < 0.04) await this.#kill();
    else if (chance < 0.08) this.#crashEngine();
    else if (chance < 0.1) this.#cut();
    else if (chance < 0.16) await this.calm();
  }

  #ask(): void {
    const node = this.#dice.pick([...this.#nodes.values()]);
    const name = this.#dice.pick(['a', 'b', 'c']);
    const id = newRequestId(this.#environment.random);
    const tokens = this.#dice.between(1, 40);
    const leave = this.#dice.next() < 0.15 ? this.#dice.between(50, 3000) : undefined;
    this.#entries.set(id, node.mesh.self);
    this.#open += 1;
    this.#say(`${id} asks ${node.name} for ${name}`);
    void this.#watch(node, {id, name, tokens, leave});
  }

  async #watch(node: SimNode, ask: SimAsk): Promise<void> {
    const outcome = await this.#follow(node, ask);
    this.#open -= 1;
    this.#say(`${ask.id} ${outcome}`);
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }

  /** The client: reads to the end, or leaves. Returns how it ended; never rejects. */
  async #follow(node: SimNode, {id, name, tokens, leave}: SimAsk): Promise<string> {
    const client = new AbortController();
    if (leave !== undefined) this.#clock.after(leave, () => client.abort(new Fault('CANCELLED', 'left')));
    const body = Buffer.from(JSON.stringify({request: id, tokens}));
    const request = {id, model: name, endpoint: '/v1/chat/completions', needs: [], policy: automatic, body} as const;
    let text = '';
    try {
      const answer = await node.cluster.dispatch({...request, traceparent: undefined}, client.signal);
      for await (const chunk of answer.body) text += Buffer.from(chunk).toString();
    } catch (error) {
      this.#rules.checkText(id, text);
      return error instanceof Fault ? error.code : this.#rules.breach(`law 10: ${id} ended with ${String(error)}`);
    }
    this.#rules.checkText(id, text);
    if (!text.endsWith(`"token":${tokens}}\n\ndata: [DONE]\n\n`))
      this.#rules.breach(`law 10: ${id} ended early without a word`);
    return 'finished';
  }

  async #kill(): Promise<void> {
    const node = this.#dice.pick([...this.#nodes.values()]);
    this.#say(`${node.name} is killed`);
    this.#nodes.delete(node.name);
    await node.mesh[Symbol.asyncDispose]();
    await node.engines[Symbol.asyncDispose]();
    try {
      await node.cluster[Symbol.asyncDispose]();
    } catch {
      // It cannot say goodbye any more.
    }
  }

  #crashEngine(): void {
    const node = this.#dice.pick([...this.#nodes.values()]);
    this.#say(`an engine of ${node.name} dies`);
    node.engines.crash();
  }

  #cut(): void {
    const names = [...this.#boots.keys()];
    const group = names.filter(() => this.#dice.next() < 0.4);
    this.#say(`cut: ${group.join(' ')}`);
    this.#network.partition(
      names.filter(name => !group.includes(name)),
      group,
    );
  }

  /** Everything is mended: cables are in, dead nodes start again. */
  async calm(): Promise<void> {
    this.#say('all is mended');
    this.#network.heal();
    for (const name of this.#boots.keys()) if (!this.#nodes.has(name)) await this.#startNode(name);
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      await this.#clock.advance(stepMs);
      this.#check();
    }
  }

  #check(): void {
    for (const {name, engines} of this.#nodes.values()) {
      if (engines.overbooked > 0) this.#rules.breach(`law 4: ${name} lent more slots than it has`);
    }
    this.#rules.watchRuns(this.#runs);
  }

  checkEnd(): void {
    if (this.#open > 0) this.#rules.breach(`law 10: ${this.#open} requests never ended`);
    for (const {name, cluster, engines, journal} of this.#nodes.values()) {
      if (journal.open > 0) this.#rules.breach(`law 10: ${name} never noted the end of ${journal.open} requests`);
      if (cluster.inFlight() > 0) this.#rules.breach(`law 10: ${name} still counts ${cluster.inFlight()} requests`);
      if (engines.taken > 0) this.#rules.breach(`law 2: ${name} still holds ${engines.taken} slots`);
      const known = cluster.nodes().filter(({state}) => state === 'alive').length;
      if (known !== this.#nodes.size) this.#rules.breach(`${name} knows ${known} of ${this.#nodes.size} nodes`);
    }
  }

  async stop(): Promise<void> {
    for (const {cluster, mesh, engines} of this.#nodes.values()) {
      await cluster[Symbol.asyncDispose]();
      await mesh[Symbol.asyncDispose]();
      await engines[Symbol.asyncDispose]();
    }
  }

  #say(words: string): void {
    this.events.push(`${this.#clock.monotonicMs()} ${words}`);
  }
}
