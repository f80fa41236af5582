import {stepEngine} from '@hearsay/core';
import type {Busy, EngineEffect, EngineEvent, EnginePolicy, EngineSnapshot} from '@hearsay/core';
import type {EngineSize, EngineState, Environment, Fault, Refusal, StoredModel} from '@hearsay/core';
import {abortable} from './abortable.ts';
import {busyFor} from './busy-for.ts';
import {slotContext} from './engine-arguments.ts';
import type {EngineSettings} from './engine-arguments.ts';
import type {EngineExit} from './judge-exit.ts';
import {logChange} from './log-change.ts';
import {engineFailed, LlamaServer} from './llama-server.ts';
import type {LaunchSettings} from './llama-server.ts';
import {SlotReservation} from './slot-reservation.ts';
import type {SlotOwner} from './slot-reservation.ts';
import {Slots} from './slots.ts';

export interface RunnerOptions {
  readonly launch: LaunchSettings;
  readonly settings: EngineSettings;
  readonly policy: EnginePolicy;
  /** Idle time until it is unloaded; Infinity: never. */
  readonly keepAliveMs: number;
  /** After everything that the snapshot shows. */
  readonly changed: () => void;
}

/** Assumed time of a load before the first one, in milliseconds. */
const loadMsAtFirst = 5_000;

/**
 * The life of one model's engine: the only writer of its state, around the pure `stepEngine`. Events are handled one
 * after the other and to the end, so that nobody sees half a transition.
 */
export class EngineRunner implements SlotOwner {
  readonly #options: RunnerOptions;
  readonly #environment: Environment;
  readonly #slots: Slots;
  readonly #reservations = new Set<SlotReservation>();
  readonly #events: EngineEvent[] = [];
  #isStepping = false;
  #isClosed = false;
  #model: StoredModel;
  #context: number;
  #loaded: StoredModel | undefined;
  #state: EngineState = {kind: 'stopped', attempt: 0};
  #server: LlamaServer | undefined;
  #lastExit: EngineExit | undefined;
  #deadline: Disposable | undefined;
  #idle: {readonly timer: Disposable; readonly dueMs: number} | undefined;
  #settled = Promise.withResolvers<void>();
  #startedMs = 0;
  #loadMs = loadMsAtFirst;
  #readySinceWallMs: number | undefined;

  constructor(model: StoredModel, options: RunnerOptions, environment: Environment) {
    this.#model = model;
    this.#options = options;
    this.#environment = environment;
    this.#context = slotContext(model, options.settings);
    this.#slots = new Slots(options.settings.slots, environment.clock);
  }

  reserve(model: StoredModel, force: boolean): SlotReservation | Busy | Refusal {
    if (this.#isClosed) return busyFor('draining', this.#waitMs());
    if (this.#state.kind === 'broken') return this.#refused(this.#state.reason);
    this.#useModel(model);
    if (this.#state.kind === 'draining' && !force) return busyFor('draining', this.#waitMs());
    const free = this.#state.kind === 'draining' ? undefined : this.#slots.take();
    const slot = free ?? (force ? this.#slots.enqueue() : undefined);
    if (slot === undefined) return busyFor(this.#state.kind === 'ready' ? 'slots' : 'loading', this.#waitMs());
    const reservation = new SlotReservation(slot, this);
    this.#reservations.add(reservation);
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
      await abortable(this.#settled.promise, signal);
    }
  }

  giveBack(reservation: SlotReservation): void {
    if (!this.#reservations.delete(reservation)) return;
    if (this.#slots.release(reservation.slot)) this.#send({kind: 'released'});
    if (this.#state.kind === 'ready') this.#serveQueue();
    this.#watchIdle();
    this.#options.changed();
  }

  /**
   * Lets running requests end within the drain limit. Those that have not begun fail, so that they do not start it
   * again.
   */
  async stop(): Promise<void> {
    this.#failPending(engineFailed(this.#model, 'it was stopped'));
    this.#send({kind: 'unwanted'});
    await this.#server?.exited;
  }

  /** Ends everything now and takes nothing more. Resolves when the process is gone. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const fault = engineFailed(this.#model, 'this node is shutting down');
    for (const reservation of this.#reservations) reservation.fail(fault);
    this.#send({kind: 'unwanted'});
    if (this.#state.kind === 'draining') this.#send({kind: 'deadline'});
    this.#watchIdle();
    await this.#server?.exited;
    this.#deadline?.[Symbol.dispose]();
  }

  snapshot(): EngineSnapshot {
    const isReady = this.#state.kind === 'ready';
    return {
      key: this.#model.key,
      model: this.#model,
      state: this.#state.kind,
      slots: this.#slots.size,
      busy: this.#slots.held,
      queued: this.#slots.queued,
      waitMs: this.#waitMs(),
      context: this.#context,
      loadMs: this.#loadMs,
      readySinceWallMs: isReady ? this.#readySinceWallMs : undefined,
      unloadInMs: isReady ? this.#unloadInMs() : undefined,
      failure: this.#failure(),
      processId: this.#server?.processId,
    };
  }

  /**
   * What has been loaded is never used for a file that has changed since: it drains, and the next start reads the new
   * one.
   */
  #useModel(model: StoredModel): void {
    const isStale =
      this.#loaded !== undefined &&
      (this.#loaded.modifiedWallMs !== model.modifiedWallMs || this.#loaded.files.join() !== model.files.join());
    this.#model = model;
    if (isStale) this.#send({kind: 'unwanted'});
  }

  #send(event: EngineEvent): void {
    this.#events.push(event);
    if (this.#isStepping) return;
    this.#isStepping = true;
    try {
      for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift()) this.#step(next);
    } finally {
      this.#isStepping = false;
    }
  }

  #step(event: EngineEvent): void {
    const before = this.#state;
    const {state, effects} = stepEngine(before, event, this.#options.policy);
    this.#state = state;
    if (state.kind !== before.kind) {
      this.#deadline?.[Symbol.dispose]();
      logChange(this.#environment.log, this.#model, before, state);
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
        this.#deadline?.[Symbol.dispose]();
        this.#deadline = this.#environment.clock.after(effect.afterMs, () => this.#deadlinePassed());
        return;
      case 'settleWaiters':
        return this.#settle();
    }
  }

  #spawn(): void {
    const {settings, launch} = this.#options;
    const server = new LlamaServer(this.#model, settings, launch, this.#environment);
    this.#server = server;
    this.#loaded = this.#model;
    this.#startedMs = this.#environment.clock.monotonicMs();
    void this.#awaitExit(server);
  }

  async #awaitExit(server: LlamaServer): Promise<void> {
    const exit = await server.exited;
    this.#server = undefined;
    this.#loaded = undefined;
    this.#lastExit = exit;
    this.#send({kind: 'exited', reason: exit.reason, final: exit.final});
  }

  async #awaitReady(server: LlamaServer | undefined): Promise<void> {
    const isReady = await server?.ready();
    if (isReady === true && server === this.#server) this.#send({kind: 'healthy'});
  }

  /** A start that nobody waits for any more is not made. */
  #deadlinePassed(): void {
    const isNeedless = this.#state.kind === 'backing off' && !this.#isWanted();
    this.#send({kind: isNeedless ? 'unwanted' : 'deadline'});
  }

  #settle(): void {
    if (this.#state.kind === 'broken') this.#failPending(engineFailed(this.#model, this.#state.reason));
    if (this.#state.kind === 'stopped') this.#slots.serve(); // whoever waits in ready() wants it again
    if (this.#state.kind === 'ready') {
      this.#loadMs = this.#environment.clock.monotonicMs() - this.#startedMs;
      this.#readySinceWallMs = this.#environment.clock.wallMs();
      for (let held = this.#slots.held; held > 0; held -= 1) this.#send({kind: 'acquired'});
      this.#serveQueue();
    }
    const settled = this.#settled;
    this.#settled = Promise.withResolvers();
    settled.resolve();
  }

  #serveQueue(): void {
    for (let granted = this.#slots.serve(); granted > 0; granted -= 1) this.#send({kind: 'acquired'});
  }

  #isWanted(): boolean {
    return [...this.#reservations].some(({isPending}) => isPending);
  }

  #failPending(fault: Fault): void {
    for (const reservation of this.#reservations) if (reservation.isPending) reservation.fail(fault);
  }

  /** Called after everything that makes it idle or busy. */
  #watchIdle(): void {
    const isIdle = this.#state.kind === 'ready' && this.#reservations.size === 0 && !this.#isClosed;
    if (isIdle === (this.#idle !== undefined)) return;
    this.#idle?.timer[Symbol.dispose]();
    this.#idle = isIdle ? this.#idleTimer() : undefined;
  }

  #idleTimer(): {readonly timer: Disposable; readonly dueMs: number} {
    const {clock} = this.#environment;
    const {keepAliveMs} = this.#options;
    const timer = clock.after(keepAliveMs, () => this.#send({kind: 'unwanted'}));
    return {timer, dueMs: clock.monotonicMs() + keepAliveMs};
  }

  #unloadInMs(): number | undefined {
    return this.#idle && Math.max(0, this.#idle.dueMs - this.#environment.clock.monotonicMs());
  }

  #waitMs(): number {
    switch (this.#state.kind) {
      case 'ready':
        return this.#slots.waitMs();
      case 'broken':
        return 0;
      case 'starting': {
        const elapsedMs = this.#environment.clock.monotonicMs() - this.#startedMs;
        return Math.round(Math.max(0, this.#loadMs - elapsedMs)) + this.#slots.waitMs();
      }
      case 'stopped':
      case 'draining':
      case 'stopping':
      case 'backing off':
        return Math.round(this.#loadMs) + this.#slots.waitMs();
    }
  }

  #refused(reason: string): Refusal {
    return {kind: 'refused', code: 'broken', message: engineFailed(this.#model, reason).message};
  }

  #failure(): string | undefined {
    if (this.#state.kind !== 'broken' && this.#state.kind !== 'backing off') return undefined;
    return [this.#state.reason, ...(this.#lastExit?.lines ?? [])].join('\n');
  }
}
