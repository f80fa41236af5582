import {Fault} from '@hearsay/core';
import type {Busy, Clock, EngineHost, EngineSnapshot, LogPage, MemoryFacts, Refusal, Reservation} from '@hearsay/core';
import type {StoredModel, WorkResponse} from '@hearsay/core';

/** One run of one request, as the simulation saw it from inside the engine. */
export interface Run {
  readonly request: string;
  readonly node: string;
  readonly startedMs: number;
  endedMs: number | undefined;
}

const slots = 2;
const loadMs = 1500;
const tokenMs = 60;

interface Place {
  readonly granted: Promise<void>;
  readonly grant: () => void;
  held: boolean;
}

interface Engine {
  readonly model: StoredModel;
  readonly places: Set<Place>;
  readonly queue: Place[];
  readyAtMs: number;
  /** Aborts when this process dies; the next one has a new one. */
  process: AbortController;
}

/**
 * Engines without processes: they take time to load, have slots, stream counted pieces, and die when told. Each piece
 * carries the name of its run, so that a client can tell two runs apart.
 */
export class SimEngines implements EngineHost {
  readonly #node: string;
  readonly #clock: Clock;
  readonly #runs: Run[];
  readonly #engines = new Map<string, Engine>();
  readonly #listeners = new Set<() => void>();
  #loadSeq = 0;
  #isDead = false;

  constructor(node: string, clock: Clock, runs: Run[]) {
    this.#node = node;
    this.#clock = clock;
    this.#runs = runs;
  }

  /** Slots that are taken beyond what there is; always 0 unless a rule was broken. */
  get overbooked(): number {
    return Math.max(0, ...[...this.#engines.values()].map(engine => this.#held(engine) - slots));
  }

  get taken(): number {
    return [...this.#engines.values()].reduce((sum, {places, queue}) => sum + places.size + queue.length, 0);
  }

  /** Kills one engine's process, as a crash does; the next request starts it again. */
  crash(): void {
    const [engine] = this.#engines.values();
    if (!engine) return;
    engine.process.abort(new Fault('ENGINE_FAILED', 'llama-server died'));
    engine.process = new AbortController();
    engine.readyAtMs = this.#clock.monotonicMs() + loadMs;
    this.#changed();
  }

  reserve(model: StoredModel, {force}: {readonly force: boolean}): Reservation | Busy | Refusal {
    if (this.#isDead) return {kind: 'refused', code: 'broken', message: 'dead'};
    const engine = this.#engine(model);
    const isFree = this.#held(engine) < slots && engine.queue.length === 0;
    if (!isFree && !force) return {kind: 'busy', reason: 'slots', record: undefined, retryAfterMs: 1000};
    const {promise, resolve} = Promise.withResolvers<void>();
    const place: Place = {granted: promise, grant: resolve, held: false};
    if (isFree) this.#grant(engine, place);
    else engine.queue.push(place);
    this.#changed();
    const mine = new AbortController();
    return {
      kind: 'accepted',
      run: async ({body}, signal) => this.#run(engine, place, body, AbortSignal.any([signal, mine.signal])),
      [Symbol.asyncDispose]: async () => {
        mine.abort(new Fault('CANCELLED', 'given back'));
        this.#giveBack(engine, place);
      },
    };
  }

  engines(): readonly EngineSnapshot[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#engines.values()].map(engine => ({
      key: engine.model.key,
      model: engine.model,
      state: engine.readyAtMs <= nowMs ? 'ready' : 'starting',
      slots,
      busy: this.#held(engine),
      queued: engine.queue.length,
      waitMs: 500 * engine.queue.length,
      context: 4096,
      readySinceWallMs: engine.readyAtMs <= nowMs ? engine.readyAtMs : undefined,
      unloadInMs: Infinity,
      failure: undefined,
      processId: undefined,
    }));
  }

  load(model: StoredModel): Refusal | undefined {
    this.#engine(model);
    this.#changed();
    return undefined;
  }

  logs(): LogPage {
    return {lines: [], first: 0, next: 0};
  }

  async stop(): Promise<void> {
    this.crash();
  }

  hardware(): undefined {
    return undefined;
  }

  memory(): MemoryFacts {
    return {kind: 'ram', totalBytes: 16e9, freeBytes: 8e9};
  }

  loadSeq(): number {
    return this.#loadSeq;
  }

  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return {[Symbol.dispose]: () => void this.#listeners.delete(listener)};
  }

  describe(): string {
    return 'simulated';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDead = true;
    for (const {process} of this.#engines.values()) process.abort(new Fault('ENGINE_FAILED', 'the node is gone'));
  }

  async #run(engine: Engine, place: Place, body: Uint8Array, signal: AbortSignal): Promise<WorkResponse> {
    const stop = AbortSignal.any([signal, engine.process.signal]);
    const {request, tokens}: {request: string; tokens: number} = JSON.parse(Buffer.from(body).toString());
    await Promise.race([place.granted, aborted(stop)]);
    const waitMs = engine.readyAtMs - this.#clock.monotonicMs();
    if (waitMs > 0) await this.#clock.sleep(waitMs, stop);
    stop.throwIfAborted();
    const run: Run = {request, node: this.#node, startedMs: this.#clock.monotonicMs(), endedMs: undefined};
    const name = `${this.#node}#${this.#runs.push(run)}`;
    const clock = this.#clock;
    async function* pieces(): AsyncGenerator<Uint8Array> {
      try {
        for (let token = 1; token <= tokens; token += 1) {
          await clock.sleep(tokenMs, stop);
          yield Buffer.from(`data: {"run":"${name}","token":${token}}\n\n`);
        }
        yield Buffer.from('data: [DONE]\n\n');
      } finally {
        run.endedMs = clock.monotonicMs();
      }
    }
    return {status: 200, contentType: 'text/event-stream', body: pieces(), record: () => undefined};
  }

  #engine(model: StoredModel): Engine {
    const known = this.#engines.get(model.key);
    if (known) return known;
    const readyAtMs = this.#clock.monotonicMs() + loadMs;
    const engine = {model, places: new Set<Place>(), queue: [], readyAtMs, process: new AbortController()};
    this.#engines.set(model.key, engine);
    this.#clock.after(loadMs, () => this.#changed());
    return engine;
  }

  #held({places}: Engine): number {
    return [...places].filter(({held}) => held).length;
  }

  #grant(engine: Engine, place: Place): void {
    place.held = true;
    engine.places.add(place);
    place.grant();
  }

  #giveBack(engine: Engine, place: Place): void {
    const waiting = engine.queue.indexOf(place);
    if (waiting >= 0) engine.queue.splice(waiting, 1);
    if (!engine.places.delete(place) && waiting < 0) return;
    const next = this.#held(engine) < slots ? engine.queue.shift() : undefined;
    if (next) this.#grant(engine, next);
    this.#changed();
  }

  #changed(): void {
    this.#loadSeq += 1;
    for (const call of this.#listeners) call();
  }
}

async function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), {once: true});
  });
}
