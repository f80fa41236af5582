import {Fault, isForm, parseObject, withFormFields} from '@hearsay/core';
import type {Busy, Capability, EngineCall, EngineSnapshot, Environment, Refusal, ReserveOptions} from '@hearsay/core';
import {busyFor} from './busy-for.ts';
import {readModels} from './external-model.ts';
import type {ExternalModel} from './external-model.ts';
import type {Call} from './llama-client.ts';
import {LlamaClient} from './llama-client.ts';
import {SlotReservation} from './slot-reservation.ts';
import type {EngineDoor, SlotOwner} from './slot-reservation.ts';
import {Slots} from './slots.ts';

/** A server with an OpenAI-compatible API that somebody else runs, on this machine or beside it. */
export interface ExternalEngineConfig {
  readonly name: string;
  /** With or without `/v1` at its end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  /** Requests that it gets at the same time, for each of its models. */
  readonly slots: number;
  readonly context: number;
  readonly capabilities: readonly Capability[];
}

/** It is asked for its models this often, and has so long to answer. */
const lookEveryMs = 5_000;
const lookMsMax = 4_000;

/** The first look, for which the start of the node waits. */
const firstLookMsMax = 1_000;

/** Looks without an answer until its models are taken off the list. */
const failuresMax = 2;

/** One external engine: lists its models while it answers, and lends slots of it. It is never started or stopped. */
export class ExternalEngine implements AsyncDisposable {
  readonly #config: ExternalEngineConfig;
  readonly #environment: Environment;
  readonly #client: LlamaClient;
  readonly #changed: (what: 'models' | 'slots') => void;
  readonly #served = new Map<string, ServedModel>();
  #models: readonly ExternalModel[] = [];
  #failures = 0;
  #timer: Disposable | undefined;
  #isClosed = false;

  constructor(config: ExternalEngineConfig, changed: (what: 'models' | 'slots') => void, environment: Environment) {
    const url = new URL(config.url);
    this.#config = config;
    this.#environment = environment;
    this.#changed = changed;
    this.#client = new LlamaClient({
      host: url.hostname.replace(/^\[|\]$/gu, ''),
      port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
      isSecure: url.protocol === 'https:',
      basePath: url.pathname.replace(/\/+$/u, '').replace(/\/v1$/u, ''),
      apiKey: config.apiKey,
      explain: async cause => externalFailed(config.name, cause),
    });
  }

  /** Looks for the first time; a server that is not there yet is looked for again and again. */
  async start(): Promise<void> {
    await this.#look(firstLookMsMax);
  }

  models(): readonly ExternalModel[] {
    return this.#models;
  }

  engines(): readonly EngineSnapshot[] {
    return this.#models.map(model => this.#serve(model).snapshot());
  }

  /** Undefined when the model is not one of this engine's. */
  reserve(key: string, options: ReserveOptions): SlotReservation | Busy | Refusal | undefined {
    const model = this.#models.find(({stored}) => stored.key === key);
    return model && this.#serve(model).reserve(options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#timer?.[Symbol.dispose]();
    for (const served of this.#served.values()) served.close();
    this.#client.destroy();
  }

  async #look(msMax: number): Promise<void> {
    const limit = new AbortController();
    using _limit = this.#environment.clock.after(msMax, () => limit.abort());
    const {name: engine, capabilities, context} = this.#config;
    const answer = await this.#client.look('/v1/models', limit.signal);
    const list = answer?.status === 200 ? answer.json : undefined;
    const found = readModels(list, {engine, capabilities, context});
    if (this.#isClosed) return;
    this.#failures = found === undefined ? this.#failures + 1 : 0;
    if (found !== undefined || this.#failures >= failuresMax) this.#list(found ?? []);
    this.#timer = this.#environment.clock.after(lookEveryMs, () => void this.#look(lookMsMax));
  }

  #list(models: readonly ExternalModel[]): void {
    const keyOf = ({stored}: ExternalModel): string => `${stored.key} ${stored.digest}`;
    const isSame = models.map(keyOf).join() === this.#models.map(keyOf).join();
    this.#models = models;
    if (isSame) return;
    const {name: engine} = this.#config;
    if (models.length === 0) this.#environment.log('warn', 'an external engine does not answer', {engine});
    else this.#environment.log('info', 'an external engine serves models', {engine, models: models.map(({id}) => id)});
    this.#changed('models');
  }

  #serve(model: ExternalModel): ServedModel {
    const known = this.#served.get(model.stored.key);
    if (known !== undefined) return known;
    const served = new ServedModel(model, this.#config, this.#client, () => this.#changed('slots'), this.#environment);
    this.#served.set(model.stored.key, served);
    return served;
  }
}

/** One model of an external engine with the slots that we allow ourselves. */
class ServedModel implements SlotOwner, EngineDoor {
  readonly #model: ExternalModel;
  readonly #client: LlamaClient;
  readonly #slots: Slots;
  readonly #changed: () => void;
  readonly #reservations = new Set<SlotReservation>();
  readonly #sinceWallMs: number;

  constructor(
    model: ExternalModel,
    {slots}: ExternalEngineConfig,
    client: LlamaClient,
    changed: () => void,
    {clock}: Environment,
  ) {
    this.#model = model;
    this.#client = client;
    this.#slots = new Slots(slots, clock);
    this.#changed = changed;
    this.#sinceWallMs = clock.wallMs();
  }

  reserve({force, beside}: ReserveOptions): SlotReservation | Busy {
    const slot = this.#slots.take(beside) ?? (force ? this.#slots.enqueue() : undefined);
    if (slot === undefined) return busyFor('slots', this.#slots.waitMs());
    const reservation = new SlotReservation(slot, this);
    this.#reservations.add(reservation);
    this.#changed();
    return reservation;
  }

  async ready(): Promise<EngineDoor> {
    return this;
  }

  /** Unlike our own llama-servers it serves several models and must hear its own name for this one. */
  call(call: EngineCall, signal: AbortSignal): Call {
    return this.#client.call({...call, body: withModel(call, this.#model.id)}, signal);
  }

  async giveBack(reservation: SlotReservation): Promise<void> {
    if (!this.#reservations.delete(reservation)) return;
    this.#slots.release(reservation.slot);
    this.#slots.serve();
    this.#changed();
  }

  close(): void {
    for (const reservation of this.#reservations) {
      reservation.fail(new Fault('ENGINE_FAILED', 'this node is shutting down'));
    }
  }

  snapshot(): EngineSnapshot {
    const {stored, context} = this.#model;
    return {
      key: stored.key,
      model: stored,
      state: 'ready',
      slots: this.#slots.size,
      busy: this.#slots.held,
      queued: this.#slots.queued,
      waitMs: this.#slots.waitMs(),
      context,
      readySinceWallMs: this.#sinceWallMs,
      unloadInMs: Infinity,
      failure: undefined,
      processId: undefined,
      processor: 'external',
    };
  }
}

const decoder = new TextDecoder();

/** The body with another `model`; one that is neither a form nor a JSON object is for the engine to refuse. */
function withModel({body, contentType = ''}: EngineCall, model: string): Uint8Array {
  if (isForm(contentType)) return withFormFields(body, contentType, {model});
  const value = parseObject(decoder.decode(body));
  return value === undefined || value['model'] === model
    ? body
    : new TextEncoder().encode(JSON.stringify({...value, model}));
}

function externalFailed(engine: string, cause: unknown): Fault {
  const reason = cause instanceof Error ? cause.message : 'it cannot be reached';
  return new Fault('ENGINE_FAILED', `the external engine ${engine} failed: ${reason}`, {cause, details: {engine}});
}
