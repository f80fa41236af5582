import {estimateFit, isModelNamed} from '@hearsay/core';
import type {Clock, EngineSize, LoadWish, MemoryFacts, SizeWish, StoredModel} from '@hearsay/core';
import type {LoadKey, MemoryNotes} from './memory-notes.ts';
import {cacheTypesOf, checkOwnArguments, copiesWeights} from './own-arguments.ts';
import {residentMemory} from './resident-memory.ts';

/** What the owner wants for one model; what is not said holds as for all. */
export interface ModelSettings {
  /** Exactly so much context for each slot. */
  readonly context?: number | undefined;
  readonly slots?: number | undefined;
  /** Never unloaded to make room, nor for want of requests. */
  readonly keep?: boolean | undefined;
  readonly extraArguments?: readonly string[] | undefined;
}

export interface NeedsConfig {
  readonly slots: number;
  readonly contextMax: number | undefined;
  readonly extraArguments: readonly string[];
  /** By a name, written in any way that a request may write it. */
  readonly models?: Readonly<Record<string, ModelSettings>> | undefined;
  /** Name and version of the engine, for the notes. */
  readonly engine: string;
}

/** An engine has taken noticeably more than noted when it is this share. */
const growthNoted = 1.02;

/** Reading what a process has takes a moment, and requests end by the hundred. */
const measureAgainMs = 1_000;

/** What a device lost during a load is only believed within these shares of the estimate: others use it as well. */
const deviceShareMin = 0.5;
const deviceShareMax = 2;

/** The memory of a machine and who else of ours has some of it. */
interface Surroundings {
  readonly facts: MemoryFacts;
  readonly beside: string;
}

interface Begun {
  readonly model: StoredModel;
  readonly size: EngineSize;
  readonly before: Surroundings;
  takenBytes: number;
  measuredAtMs: number;
  awaitsDevice: boolean;
}

/** Knows what the owner wants for each model, and what that takes: by its header, corrected by what it took before. */
export class ModelNeeds {
  readonly #config: NeedsConfig;
  readonly #notes: MemoryNotes;
  /** By the models themselves, which are listed anew when their names change: every request asks. */
  readonly #set = new WeakMap<StoredModel, ModelSettings>();
  readonly #clock: Clock;
  readonly #begun = new Map<string, Begun>();
  /** What somebody asked for when loading it by hand, by the key of the model. */
  readonly #asked = new Map<string, ModelSettings>();
  /** What requests wanted that the engines of now were started for, by the key of the model. */
  readonly #wanted = new Map<string, number>();

  /** Throws BAD_CONFIG for arguments that must not be there. */
  constructor(config: NeedsConfig, notes: MemoryNotes, clock: Clock) {
    this.#clock = clock;
    this.#config = config;
    this.#notes = notes;
    checkOwnArguments(config.extraArguments, 'engine.extra_args');
    const entries = Object.entries(config.models ?? {});
    for (const [name, {extraArguments = []}] of entries) {
      checkOwnArguments(extraArguments, `extra_arguments of the model "${name}"`);
    }
  }

  /** Until it is stopped, wishes go before what the owner has set, the newest first; undefined forgets them. */
  ask(key: string, wish: LoadWish | undefined): void {
    if (wish === undefined) {
      this.#asked.delete(key);
      return;
    }
    const {context, slots, keep} = wish;
    this.#asked.set(key, {
      ...this.#asked.get(key),
      ...(context !== undefined && {context}),
      ...(slots !== undefined && {slots}),
      ...(keep && {keep}),
    });
  }

  settings(model: StoredModel): ModelSettings {
    const own = this.#set.get(model) ?? settingsOf(model, this.#config.models ?? {});
    this.#set.set(model, own);
    return {...own, ...this.#asked.get(model.key)};
  }

  wish(model: StoredModel): SizeWish {
    const {slots: slotsMax, contextMax} = this.#config;
    const {slots, context} = this.settings(model);
    return {slots, slotsMax, context, contextMax, contextWanted: this.#wanted.get(model.key)};
  }

  /** What the next start should have because a request wants it; undefined: what everybody gets. */
  want(key: string, contextTokens: number | undefined): void {
    if (contextTokens === undefined) this.#wanted.delete(key);
    else this.#wanted.set(key, contextTokens);
  }

  wanted(key: string): number | undefined {
    return this.#wanted.get(key);
  }

  /** All arguments of the owner for this model; the model's own come last, so that they win. */
  ownArguments(model: StoredModel): readonly string[] {
    return [...this.#config.extraArguments, ...(this.settings(model).extraArguments ?? [])];
  }

  estimate(model: StoredModel, size: EngineSize, place: MemoryFacts['kind']): number {
    return this.#notes.correct(this.#key(model, size, place), this.#byHeader(model, size, place));
  }

  /** An engine of that size is about to be started. */
  begin(model: StoredModel, size: EngineSize, before: Surroundings): void {
    const awaitsDevice = before.facts.kind === 'device';
    this.#begun.set(model.key, {model, size, before, awaitsDevice, takenBytes: 0, measuredAtMs: -Infinity});
  }

  /** What it has been seen to take since; undefined: nothing yet. */
  taken(key: string): number | undefined {
    return this.#begun.get(key)?.takenBytes || undefined;
  }

  /** Notes what a ready engine in system memory has; true when that is news. It grows with its first requests. */
  measureProcess(key: string, processId: number | undefined): boolean {
    const begun = this.#begun.get(key);
    const nowMs = this.#clock.monotonicMs();
    if (begun === undefined || begun.before.facts.kind !== 'ram' || nowMs - begun.measuredAtMs < measureAgainMs) {
      return false;
    }
    begun.measuredAtMs = nowMs;
    const takenBytes = residentMemory(processId)?.totalBytes ?? 0;
    return takenBytes > begun.takenBytes * growthNoted && this.#note(begun, takenBytes);
  }

  /** True when an engine on a device has become ready and nobody has looked yet what that took. */
  awaitsDevice(key: string): boolean {
    return this.#begun.get(key)?.awaitsDevice === true;
  }

  measureDevice(key: string, after: Surroundings): void {
    const begun = this.#begun.get(key);
    if (begun?.awaitsDevice !== true) return;
    begun.awaitsDevice = false;
    if (after.beside !== begun.before.beside) return;
    const takenBytes = begun.before.facts.freeBytes - after.facts.freeBytes;
    const share = takenBytes / this.#byHeader(begun.model, begun.size, 'device');
    if (share >= deviceShareMin && share <= deviceShareMax) this.#note(begun, takenBytes);
  }

  #note(begun: Begun, takenBytes: number): true {
    const {model, size, before} = begun;
    begun.takenBytes = takenBytes;
    const estimateBytes = this.#byHeader(model, size, before.facts.kind);
    this.#notes.note(this.#key(model, size, before.facts.kind), estimateBytes, takenBytes);
    return true;
  }

  #byHeader(model: StoredModel, size: EngineSize, place: MemoryFacts['kind']): number {
    const {shape} = model;
    if (shape === undefined) return model.needBytes;
    const own = this.ownArguments(model);
    const copiedBytes = copiesWeights(own) ? shape.copiedBytes : 0;
    return estimateFit({...shape, copiedBytes}, size, {place, ...cacheTypesOf(own)}).totalBytes;
  }

  #key({digest}: StoredModel, {context, slots}: EngineSize, place: MemoryFacts['kind']): LoadKey {
    return {digest, context, slots, place, engine: this.#config.engine};
  }
}

/** A name to the letter goes before what it may mean otherwise. */
function settingsOf(model: StoredModel, all: NonNullable<NeedsConfig['models']>): ModelSettings {
  const names = Object.keys(all);
  const name = names.find(one => model.names.includes(one)) ?? names.find(one => isModelNamed(model, one));
  return name === undefined ? {} : (all[name] ?? {});
}
