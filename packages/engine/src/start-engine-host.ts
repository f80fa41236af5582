import type {Busy, EngineHost, EnginePolicy, EngineSnapshot} from '@hearsay/core';
import type {Environment, MemoryFacts, Refusal, Reservation, StoredModel} from '@hearsay/core';
import {EngineRunner} from './engine-runner.ts';
import {installHint} from './install-hint.ts';
import {measureMemory} from './measure-memory.ts';
import {reapOrphans} from './pid-files.ts';

export interface EngineHostConfig {
  /** How to start llama-server; undefined when this machine has none: then every reservation is refused and says so. */
  readonly engine:
    | {readonly command: string; readonly leadingArguments: readonly string[]; readonly description: string}
    | undefined;
  /** Where running engines are noted. Belongs to this host alone. */
  readonly runFolder: string;
  /** Requests that one engine runs at the same time. */
  readonly slots: number;
  /** Most context of one slot, in tokens. */
  readonly contextMax: number;
  /** Idle time until an engine is unloaded; Infinity: never. */
  readonly keepAliveMs: number;
  /** Threads of one engine; undefined: llama-server's own choice. */
  readonly threads: number | undefined;
  readonly cacheRamMiB: number;
  /** Given to every llama-server after our own, so that they win. */
  readonly extraArguments: readonly string[];
  /** Environment variables, of which engines get those that they need. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Limits and patience, where they differ from `enginePolicy`. */
  readonly policy?: Partial<EnginePolicy>;
}

const enginePolicy: EnginePolicy = {
  startTimeoutMs: 10 * 60_000, // a hundred gigabytes from a slow disk
  stableAfterMs: 30_000, // longer than most requests that would crash it
  drainTimeoutMs: 10_000, // the owner asked for the memory back
  killAfterMs: 3_000, // it ends within 0.2 s if it can; closing must be over in 5 s
  coolDownMs: 60_000,
  maxAttempts: 3,
  backoffMs: attempt => 500 * 2 ** attempt,
};

/** Ends the engines that an earlier run left behind, then lends engines on demand. Nothing is started yet. */
export async function startEngineHost(config: EngineHostConfig, environment: Environment): Promise<EngineHost> {
  await reapOrphans(config.runFolder, environment);
  return new LocalEngineHost(config, environment);
}

class LocalEngineHost implements EngineHost {
  readonly #config: EngineHostConfig;
  readonly #environment: Environment;
  /** By the key of their model; one stays when its engine has stopped, because it knows how that one behaved. */
  readonly #runners = new Map<string, EngineRunner>();
  readonly #listeners = new Set<{readonly call: () => void}>();
  #isClosed = false;
  #loadSeq = 0;

  constructor(config: EngineHostConfig, environment: Environment) {
    this.#config = config;
    this.#environment = environment;
  }

  reserve(model: StoredModel, {force}: {readonly force: boolean}): Reservation | Busy | Refusal {
    if (this.#isClosed) return {kind: 'busy', reason: 'draining', record: undefined, retryAfterMs: 1_000};
    if (model.problem !== undefined) return {kind: 'refused', code: 'broken', message: model.problem};
    const runner = this.#runner(model);
    return runner === undefined
      ? {kind: 'refused', code: 'broken', message: `there is no llama-server on this node. ${installHint}`}
      : runner.reserve(model, force);
  }

  async stop(key: string): Promise<void> {
    await this.#runners.get(key)?.stop();
  }

  engines(): readonly EngineSnapshot[] {
    const all = [...this.#runners.values()].map(runner => runner.snapshot());
    return all.filter(({state, busy, queued}) => state !== 'stopped' || busy + queued > 0);
  }

  memory(): MemoryFacts {
    return measureMemory();
  }

  loadSeq(): number {
    return this.#loadSeq;
  }

  onChange(call: () => void): Disposable {
    const listener = {call};
    this.#listeners.add(listener);
    return {[Symbol.dispose]: () => void this.#listeners.delete(listener)};
  }

  describe(): string {
    return this.#config.engine?.description ?? 'none';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#runners.values()].map(runner => runner.close()));
  }

  #runner(model: StoredModel): EngineRunner | undefined {
    const {engine, runFolder, environment: variables, keepAliveMs} = this.#config;
    if (engine === undefined) return undefined;
    const known = this.#runners.get(model.key);
    if (known !== undefined) return known;
    const options = {
      launch: {command: engine.command, leadingArguments: engine.leadingArguments, runFolder, variables},
      settings: this.#config,
      policy: {...enginePolicy, ...this.#config.policy},
      keepAliveMs,
      changed: () => this.#changed(),
    };
    const runner = new EngineRunner(model, options, this.#environment);
    this.#runners.set(model.key, runner);
    return runner;
  }

  #changed(): void {
    this.#loadSeq += 1;
    for (const {call} of this.#listeners) call();
  }
}
