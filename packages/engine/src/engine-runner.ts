import {stepEngine, untilAborted} from '@hearsay/core';
import type {EngineEffect, EngineEvent, EngineSize, EngineSnapshot} from '@hearsay/core';
import type {EngineState, Environment, LoadWish, Refusal} from '@hearsay/core';
import type {ReserveOptions, StoredModel} from '@hearsay/core';
import {busyFor} from './busy-for.ts';
import {Deadline} from './deadline.ts';
import {slotContext} from './engine-arguments.ts';
import type {EngineSettings} from './engine-arguments.ts';
import {EngineLog} from './engine-log.ts';
import {IdleWatch} from './idle-watch.ts';
import {failureOf, judgeBroken} from './judge-exit.ts';
import type {EngineExit} from './judge-exit.ts';
import {hasSameFiles} from './has-same-files.ts';
import {LoadWatch} from './load-watch.ts';
import {logChange} from './log-change.ts';
import {engineFailed, engineRefused, LlamaServer} from './llama-server.ts';
import {Reservations} from './reservations.ts';
import type {RunnerOptions} from './runner-options.ts';
import {serial} from './serial.ts';
import {ServerWatch} from './server-watch.ts';
import {SlotReservation} from './slot-reservation.ts';
import type {Reserved, SlotOwner} from './slot-reservation.ts';
import {Slots} from './slots.ts';

/**
 * The life of one model's engine: the only writer of its state, around the pure `stepEngine`. Events are handled one
 * after the other and to the end, so that nobody sees half a transition.
 */
export class EngineRunner implements SlotOwner {
  readonly #options: RunnerOptions;
  readonly #environment: Environment;
  readonly #slots: Slots;
  readonly #reservations = new Reservations();
  readonly #send = serial((event: EngineEvent) => this.#step(event));
  readonly log: EngineLog = new EngineLog();
  readonly #idle: IdleWatch;
  readonly #deadline: Deadline;
  readonly #load: LoadWatch;
  #isClosed = false;
  #model: StoredModel;
  #context: number;
  /** What the last start has read. */
  #spawned: StoredModel | undefined;
  #state: EngineState = {kind: 'stopped', attempt: 0};
  #server: LlamaServer | undefined;
  #watch: ServerWatch | undefined;
  #lastExit: EngineExit | undefined;
  #settled = Promise.withResolvers<void>();
  #readySinceWallMs: number | undefined;
  #settings: EngineSettings;
  /** Somebody asked for the engine itself, not for an answer of it. */
  #isLoadWanted = false;

  constructor(model: StoredModel, options: RunnerOptions, environment: Environment) {
    this.#model = model;
    this.#options = options;
    this.#settings = options.settings;
    this.#environment = environment;
    this.#context = slotContext(model, options.settings);
    this.#load = new LoadWatch(options.loadTimes, environment.clock);
    this.#deadline = new Deadline(environment.clock, () => this.#deadlinePassed());
    this.#slots = new Slots(options.settings.slots, environment.clock);
    this.#idle = new IdleWatch(options.keepAlive, environment.clock, () => this.#send({kind: 'unwanted'}));
  }

  /** `anew`: first ends an engine that is idle, so that it is started with another size. */
  reserve(model: StoredModel, {force, keepAliveMs, beside}: ReserveOptions, anew: boolean): Reserved {
    if (this.#isClosed) return busyFor('draining', this.#waitMs());
    this.#useModel(model);
    if (this.#state.kind === 'broken') return engineRefused(model, judgeBroken(this.#state, this.#deadline.leftMs));
    if (anew) this.#send({kind: 'unwanted'});
    if (this.#state.kind === 'draining' && !force) return busyFor('draining', this.#waitMs());
    const free = this.#state.kind === 'draining' ? undefined : this.#slots.take(beside);
    const slot = free ?? (force ? this.#slots.enqueue() : undefined);
    if (slot === undefined) return busyFor(this.#state.kind === 'ready' ? 'slots' : 'loading', this.#waitMs());
    const reservation = new SlotReservation(slot, this);
    this.#reservations.add(reservation);
    this.#idle.asked(keepAliveMs);
    if (free !== undefined) this.#send({kind: 'acquired'});
    this.#send({kind: 'wanted'});
    this.#watchIdle();
    this.#options.changed();
    return reservation;
  }

  /** How large it will be at its next start. */
  resize({slots, context}: EngineSize): void {
    this.#context = context;
    this.#slots.resize(slots);
  }

  async ready(signal: AbortSignal): Promise<LlamaServer> {
    for (;;) {
      signal.throwIfAborted(); // before it is wanted: a closed engine must not start again
      if (this.#state.kind === 'broken') throw engineFailed(this.#model, this.#state.reason);
      const isUp = this.#state.kind === 'ready' || this.#state.kind === 'draining';
      if (isUp && this.#server !== undefined) return this.#server;
      this.#send({kind: 'wanted'});
      await untilAborted(this.#settled.promise, signal);
    }
  }

  /** A slot whose request was cut counts as busy until llama-server is seen not to work on it any more. */
  async giveBack(reservation: SlotReservation, wasCut: boolean): Promise<void> {
    if (!this.#reservations.delete(reservation)) return;
    const free = (): void => {
      if (this.#slots.release(reservation.slot)) this.#send({kind: 'released'});
      if (this.#state.kind === 'ready') this.#serveQueue();
      this.#options.changed();
    };
    if (wasCut && this.#watch !== undefined) await this.#watch.cut(reservation.slot, free);
    else free();
    this.#watchIdle();
  }

  load(model: StoredModel, wish: LoadWish): Refusal | undefined {
    if (this.#isClosed) return engineRefused(this.#model, 'this node is shutting down');
    this.#useModel(model);
    this.#endCoolDown();
    const {slots = this.#settings.slots, context: contextMax = this.#settings.contextMax} = wish;
    const isOther = slots !== this.#settings.slots || contextMax !== this.#settings.contextMax;
    this.#settings = {...this.#settings, slots, contextMax};
    this.#idle.loaded(wish.keep);
    this.#isLoadWanted = true;
    if (isOther) this.#send({kind: 'unwanted'});
    this.#send({kind: 'wanted'});
    return undefined;
  }

  /** Running requests may end within the drain limit; those that have not begun fail, so as not to start it again. */
  async stop(): Promise<void> {
    this.#isLoadWanted = false;
    this.#idle.forget();
    this.#settings = this.#options.settings;
    this.#reservations.failPending(engineFailed(this.#model, 'it was stopped'));
    this.#endCoolDown();
    this.#send({kind: 'unwanted'});
    await this.#server?.exited;
  }

  /** Ends everything now and takes nothing more. Resolves when the process is gone. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#reservations.failAll(engineFailed(this.#model, 'this node is shutting down'));
    this.#send({kind: 'unwanted'});
    if (this.#state.kind === 'draining') this.#send({kind: 'deadline'});
    this.#watchIdle();
    await this.#server?.exited;
    this.#deadline[Symbol.dispose]();
  }

  snapshot(): EngineSnapshot {
    const isReady = this.#state.kind === 'ready';
    const isStarting = this.#state.kind === 'starting';
    return {
      key: this.#model.key,
      model: this.#model,
      state: this.#state.kind,
      slots: this.#slots.size,
      busy: this.#slots.held,
      queued: this.#slots.queued,
      waitMs: this.#waitMs(),
      context: this.#context,
      loadMs: this.#load.expectedMs(this.#model),
      readySinceWallMs: isReady ? this.#readySinceWallMs : undefined,
      unloadInMs: isReady ? this.#idle.unloadInMs() : undefined,
      failure: failureOf(this.#state, this.#lastExit, this.#deadline.leftMs),
      processId: this.#server?.processId,
      loading: isStarting ? this.#load.progress(this.#model, this.#server?.loadedShare) : undefined,
    };
  }

  /**
   * What has been loaded is never used for a file that has changed since: it drains, and the next start reads the new
   * one, which is no more broken than it is loaded.
   */
  #useModel(model: StoredModel): void {
    const isStale = this.#spawned !== undefined && !hasSameFiles(this.#spawned, model);
    this.#model = model;
    if (!isStale) return;
    this.#endCoolDown();
    if (this.#server !== undefined) this.#send({kind: 'unwanted'});
  }

  /** There is a reason to believe that a broken engine works now. */
  #endCoolDown(): void {
    if (this.#state.kind === 'broken') this.#send({kind: 'deadline'});
  }

  #step(event: EngineEvent): void {
    const before = this.#state;
    const {state, effects} = stepEngine(before, event, this.#options.policy);
    this.#state = state;
    if (state.kind !== before.kind) {
      this.#deadline[Symbol.dispose]();
      logChange(this.#environment.log, this.#model, before, state);
      this.log.add(`hearsay: ${state.kind}${'reason' in state ? `: ${state.reason}` : ''}`);
      this.#watchIdle();
    }
    for (const effect of effects) this.#perform(effect);
    if (state !== before) this.#options.changed();
  }

  #perform(effect: EngineEffect): void {
    switch (effect.kind) {
      case 'spawn':
        return this.#spawn();
      case 'probe':
        return void this.#awaitReady(this.#server);
      case 'terminate':
        return this.#server?.terminate(this.#isClosed ? 'this node is shutting down' : 'it was stopped');
      case 'kill':
        return this.#server?.kill();
      case 'setDeadline':
        return this.#deadline.set(effect.afterMs);
      case 'settleWaiters':
        return this.#settle();
    }
  }

  #spawn(): void {
    const launch = {...this.#options.launch, log: (line: string) => this.log.add(line), begins: () => this.#begin()};
    const server = new LlamaServer(this.#model, this.#settings, launch, this.#environment);
    this.#server = server;
    this.#spawned = this.#model;
    this.#load.begin();
    void this.#awaitExit(server);
  }

  /** It has its memory: only from here on it can be too slow. */
  #begin(): void {
    this.#load.begin();
    if (this.#state.kind === 'starting') this.#deadline.set(this.#options.policy.startTimeoutMs);
  }

  async #awaitExit(server: LlamaServer): Promise<void> {
    const exit = await server.exited;
    this.#server = undefined;
    this.#lastExit = exit;
    this.#watch?.[Symbol.dispose]();
    this.#watch = undefined;
    this.#send({kind: 'exited', reason: exit.reason, final: exit.final});
  }

  async #awaitReady(server: LlamaServer | undefined): Promise<void> {
    const told = await server?.ready();
    if (told === undefined || server === undefined || server !== this.#server) return;
    this.#context = told.context ?? this.#context; // llama-server rounds it
    this.#options.loaded(this.#spawned ?? this.#model, told);
    this.#watch = new ServerWatch(server, this.#options.watch, () => this.#reservations.running, this.#environment);
    this.#send({kind: 'healthy'});
  }

  /** A start that nobody waits for any more is not made. */
  #deadlinePassed(): void {
    const isInLine = this.#state.kind === 'starting' && this.#server?.processId === undefined;
    if (isInLine && this.#isWanted()) return this.#begin();
    const isNeedless = (this.#state.kind === 'backing off' || isInLine) && !this.#isWanted();
    this.#send({kind: isNeedless ? 'unwanted' : 'deadline'});
  }

  #settle(): void {
    if (this.#state.kind === 'broken') {
      this.#isLoadWanted = false;
      this.#reservations.failPending(engineFailed(this.#model, this.#state.reason));
    }
    if (this.#state.kind === 'stopped') {
      this.#slots.serve(); // whoever waits in ready() wants it again
      if (this.#isLoadWanted && !this.#isClosed) this.#send({kind: 'wanted'});
    }
    if (this.#state.kind === 'ready') {
      this.#isLoadWanted = false;
      this.#load.end(this.#model);
      this.#readySinceWallMs = this.#environment.clock.wallMs();
      for (let inUse = this.#slots.inUse; inUse > 0; inUse -= 1) this.#send({kind: 'acquired'});
      this.#serveQueue();
    }
    this.#settled.resolve();
    this.#settled = Promise.withResolvers();
  }

  #serveQueue(): void {
    for (let granted = this.#slots.serve(); granted > 0; granted -= 1) this.#send({kind: 'acquired'});
  }

  #isWanted(): boolean {
    return this.#isLoadWanted || this.#idle.isKept || this.#reservations.isAnyPending;
  }

  /** Called after everything that makes it idle or busy. */
  #watchIdle(): void {
    this.#idle.watch(this.#state.kind === 'ready' && this.#reservations.size === 0 && !this.#isClosed);
  }

  #waitMs(): number {
    const now = {share: this.#server?.loadedShare, slotsMs: this.#slots.waitMs()};
    return this.#load.waitMs(this.#state.kind, this.#model, now);
  }
}
