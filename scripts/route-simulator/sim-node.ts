import {isNews, learn, nothingLearned} from '@hearsay/core';
import type {Beat, EngineBeat, HardwareFacts, LearnedFacts, ModelFacts, NodeId} from '@hearsay/core';
import {decodeSpeed, loadSeconds, modelOf, prefillSpeed} from './hardware.ts';
import type {Machine} from './hardware.ts';
import {digestOf, guess, modelFacts, remember, simNodeId, trueFacts} from './sim-facts.ts';
import {isIdle, newEngine} from './sim-engine.ts';
import type {Engine, Job} from './sim-engine.ts';
import type {SimRequest} from './sim-request.ts';
import type {Chance, Timeline} from './timeline.ts';

/** What the engine host assumes of a request before the first has ended. */
const holdSecondsAtFirst = 2;
const holdShare = 0.2;

export interface Ending {
  readonly finished: (request: SimRequest) => void;
  /** Its load has changed. */
  readonly changed: () => void;
}

export interface SimWorld {
  readonly timeline: Timeline;
  readonly next: Chance;
  readonly ending: Ending;
  /** Spread (sigma of the logarithm) of what machines guess of their speed; undefined: they guess nothing. */
  readonly guessError: number | undefined;
  /** Everything has been measured before. */
  readonly knowsAll: boolean;
}

/** A machine that loads, evicts, reads prompts and writes answers, all sharing one device. */
export class SimNode {
  readonly index: number;
  readonly id: NodeId;
  readonly machine: Machine;
  readonly engines: Map<number, Engine> = new Map();
  isUp = true;
  loads = 0;
  models: readonly ModelFacts[];
  /** What it thinks of its own speed before it has measured it. */
  readonly hardware: HardwareFacts | undefined;
  readonly #timeline: Timeline;
  readonly #next: Chance;
  readonly #ending: Ending;
  readonly #learned = new Map<number, LearnedFacts>();
  readonly #hold = new Map<number, number>();
  #advancedAt = 0;
  #plan = 0;
  #sequence = 0;
  #loadSeq = 0;

  constructor(index: number, machine: Machine, world: SimWorld) {
    this.index = index;
    this.id = simNodeId(index);
    this.machine = machine;
    this.#timeline = world.timeline;
    this.#next = world.next;
    this.#ending = world.ending;
    this.models = machine.models.map(model => modelFacts(model, undefined));
    this.hardware = world.guessError === undefined ? undefined : guess(machine.kind, world.next, world.guessError);
    if (!world.knowsAll) return;
    for (const model of machine.models) this.#learned.set(model, trueFacts(machine.kind, model));
    this.models = machine.models.map(model => modelFacts(model, this.#learned.get(model)));
  }

  /** What it would tell of itself right now. */
  beat(ttlMs: number): Beat {
    this.#sequence += 1;
    const totalBytes = this.machine.kind.gigabytes * 1e9;
    return {
      kind: 'beat',
      node: this.id,
      name: String(this.index),
      version: '',
      boot: 1,
      sequence: this.#sequence,
      ttlMs,
      loadSeq: this.#loadSeq,
      inventory: '',
      engines: [...this.engines.values()].map(engine => this.#engineBeat(engine)),
      memory: {kind: 'device', totalBytes, freeBytes: totalBytes},
      flags: {draining: false, paused: false},
    };
  }

  /** Seconds until a request that came now could begin. */
  wait(model: number): number {
    const engine = this.engines.get(model);
    if (!engine) return this.hasRoom(model) ? loadSeconds(this.machine.kind, modelOf(model)) : 10;
    const load = engine.isReady ? 0 : Math.max(0, engine.readyAt - this.#timeline.now);
    return load + this.#slotWait(engine);
  }

  /** Whether it could begin at once, or as soon as the engine is loaded. */
  hasSlot(model: number): boolean {
    const engine = this.engines.get(model);
    if (!engine) return this.hasRoom(model);
    return engine.running.length + engine.queue.length < this.machine.kind.slots;
  }

  hasRoom(model: number): boolean {
    let free = this.machine.kind.gigabytes;
    for (const engine of this.engines.values()) if (!isIdle(engine)) free -= modelOf(engine.model).gigabytes;
    return free >= modelOf(model).gigabytes;
  }

  submit(request: SimRequest): void {
    this.#advance();
    const engine = this.#engineFor(request.model);
    if (!engine) {
      this.#timeline.in(0.5, () => (this.isUp ? this.submit(request) : undefined)); // no memory now; soon perhaps
      return;
    }
    engine.queue.push(request);
    engine.usedAt = this.#timeline.now;
    this.#serve(engine);
    this.#replan();
    this.#changed();
  }

  /** Everything on it is lost. */
  sleep(): readonly SimRequest[] {
    this.isUp = false;
    this.#plan += 1;
    const all = [...this.engines.values()];
    this.engines.clear();
    return all.flatMap(({running, queue}) => [...running.map(({request}) => request), ...queue]);
  }

  wake(): void {
    this.isUp = true;
    this.#advancedAt = this.#timeline.now;
  }

  preload(model: number): void {
    this.engines.set(model, newEngine(model, this.#timeline.now, true));
  }

  /** Tokens of the prompt that its engine has read before. */
  known({model, session, app, prompt, history, system}: SimRequest): number {
    const cache = this.engines.get(model)?.cache;
    const inSession = Math.min(cache?.get(`s${session}`) ?? 0, history);
    return Math.min(prompt - 1, Math.max(inSession, cache?.has(`a${app}`) ? system : 0));
  }

  #engineBeat(engine: Engine): EngineBeat {
    const {isReady, readyAt, running, queue, usedAt, model} = engine;
    const {now} = this.#timeline;
    return {
      digest: digestOf(model),
      readiness: isReady ? 'ready' : 'loading',
      slots: this.machine.kind.slots,
      busy: running.length,
      queued: queue.length,
      waitMs: 1000 * ((isReady ? 0 : Math.max(0, readyAt - now)) + this.#slotWait(engine)),
      context: 32_768,
      ageSeconds: Math.max(0, Math.floor(now - readyAt)),
      untilSeconds: isIdle(engine) ? Math.max(0, 300 - Math.floor(now - usedAt)) : -1,
      sizeBytes: modelOf(model).gigabytes * 1e9,
    };
  }

  #slotWait({model, running, queue}: Engine): number {
    const {slots} = this.machine.kind;
    const ahead = running.length + queue.length - slots;
    return ahead < 0 ? 0 : ((ahead + 1) * (this.#hold.get(model) ?? holdSecondsAtFirst)) / slots;
  }

  #engineFor(model: number): Engine | undefined {
    const known = this.engines.get(model);
    if (known) return known;
    if (!this.hasRoom(model)) return undefined;
    this.#evictFor(model);
    const {now} = this.#timeline;
    const seconds = loadSeconds(this.machine.kind, modelOf(model)) * (0.85 + 0.4 * this.#next());
    const engine = newEngine(model, now + seconds, false);
    this.engines.set(model, engine);
    this.loads += 1;
    this.#timeline.in(seconds, () => {
      if (this.engines.get(model) !== engine) return;
      engine.isReady = true;
      this.#learn(model, {loadMs: 1000 * seconds});
      this.#advance();
      this.#serve(engine);
      this.#replan();
      this.#changed();
    });
    return engine;
  }

  #evictFor(model: number): void {
    let free = this.machine.kind.gigabytes - modelOf(model).gigabytes;
    for (const engine of this.engines.values()) free -= modelOf(engine.model).gigabytes;
    const idle = [...this.engines.values()].filter(isIdle).toSorted((a, b) => a.usedAt - b.usedAt);
    for (const victim of idle) {
      if (free >= 0) return;
      this.engines.delete(victim.model);
      free += modelOf(victim.model).gigabytes;
    }
  }

  #serve(engine: Engine): void {
    while (engine.isReady && engine.running.length < this.machine.kind.slots) {
      const request = engine.queue.shift();
      if (!request) return;
      request.hit = this.known(request);
      request.startedAt = this.#timeline.now;
      engine.running.push({request, engine, isReading: true, left: request.prompt - request.hit, rate: 1});
    }
  }

  #advance(): void {
    const seconds = this.#timeline.now - this.#advancedAt;
    this.#advancedAt = this.#timeline.now;
    for (const {running} of this.engines.values()) for (const job of running) job.left -= job.rate * seconds;
  }

  /** Everybody's speed depends on everybody else, so each change plans anew. */
  #replan(): void {
    const jobs = [...this.engines.values()].flatMap(({running}) => running);
    const reading = jobs.filter(({isReading}) => isReading).length;
    const writing = jobs.length - reading;
    const {kind} = this.machine;
    let soonest = Infinity;
    for (const job of jobs) {
      const model = modelOf(job.engine.model);
      job.rate = job.isReading
        ? (prefillSpeed(kind, model) / reading) * (1 - Math.min(0.5, 0.1 * writing))
        : (decodeSpeed(kind, model) / (1 + kind.crowding * (writing - 1))) * (reading > 0 ? 0.5 : 1);
      soonest = Math.min(soonest, job.left / job.rate);
    }
    this.#plan += 1;
    const plan = this.#plan;
    if (soonest < Infinity) this.#timeline.in(Math.max(1e-6, soonest), () => this.#step(plan));
  }

  #step(plan: number): void {
    if (plan !== this.#plan) return;
    this.#advance();
    for (const engine of this.engines.values()) {
      for (const job of engine.running.filter(({left, rate}) => left <= 1e-6 * Math.max(1, rate))) {
        if (job.isReading) {
          job.isReading = false;
          job.left = job.request.output;
          job.request.firstAt = this.#timeline.now;
        } else this.#finish(job);
      }
    }
    for (const engine of this.engines.values()) this.#serve(engine);
    this.#replan();
    this.#changed();
  }

  #finish({request, engine}: Job): void {
    engine.running.splice(
      engine.running.findIndex(job => job.request === request),
      1,
    );
    const {now} = this.#timeline;
    engine.usedAt = now;
    remember(engine.cache, `s${request.session}`, request.prompt + request.output);
    remember(engine.cache, `a${request.app}`, request.system);
    const readTokens = request.prompt - request.hit;
    const firstAt = request.firstAt ?? now;
    const hold = now - request.startedAt;
    const before = this.#hold.get(request.model) ?? holdSecondsAtFirst;
    this.#hold.set(request.model, before + holdShare * (hold - before));
    this.#learn(request.model, {
      prefillTps: readTokens < 16 ? undefined : readTokens / (firstAt - request.startedAt),
      decodeTps: request.output / (now - firstAt),
      holdMs: 1000 * hold,
      outputTokens: request.output,
      bytesPerToken: 4,
    });
    this.#ending.finished(request);
  }

  #learn(model: number, sample: Partial<LearnedFacts>): void {
    const facts = learn(this.#learned.get(model) ?? nothingLearned, sample);
    this.#learned.set(model, facts);
    const told = this.models.find(({digest}) => digest === digestOf(model))?.learned;
    if (!isNews(told, facts)) return;
    this.models = this.machine.models.map(index => modelFacts(index, this.#learned.get(index)));
  }

  #changed(): void {
    this.#loadSeq += 1;
    this.#ending.changed();
  }
}
