import type {Busy, EngineHost, EnginePolicy, EngineSnapshot} from '@hearsay/core';
import type {Environment, LoadWish, LogPage, MemoryFacts, Refusal, Reservation} from '@hearsay/core';
import type {ReserveOptions, StoredModel} from '@hearsay/core';
import type {ProofPolicy} from './cancel-proof.ts';
import {EngineRunner} from './engine-runner.ts';
import type {HungPolicy} from './hung-watch.ts';
import {installHint} from './install-hint.ts';
import {LoadTimes} from './load-times.ts';
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
  /** Bounds of what requests may ask instead; default: whatever they like. */
  readonly keepAliveMsMin?: number;
  readonly keepAliveMsMax?: number;
  /** Threads of one engine; undefined: llama-server's own choice. */
  readonly threads: number | undefined;
  readonly cacheRamMiB: number;
  /** Given to every llama-server after our own, so that they win. */
  readonly extraArguments: readonly string[];
  /** Environment variables, of which engines get those that they need. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Limits and patience, where they differ from `enginePolicy`. */
  readonly policy?: Partial<EnginePolicy>;
  readonly hung?: Partial<HungPolicy>;
  readonly proof?: Partial<ProofPolicy>;
  /** Where it is remembered how long loads took; undefined: nowhere. */
  readonly loadTimesFile?: string;
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

const hungPolicy: HungPolicy = {
  lookEveryMs: 5_000,
  lookMsMax: 4_000, // it answers within a millisecond, also under full load
  failuresMax: 4, // together less than half a minute, which a machine that swaps may be silent for
};

const proofPolicy: ProofPolicy = {
  graceMs: 60_000, // the rest of a long prompt, which llama-server does not leave half read
};

/** Ends the engines that an earlier run left behind, then lends engines on demand. Nothing is started yet. */
export async function startEngineHost(config: EngineHostConfig, environment: Environment): Promise<EngineHost> {
  await reapOrphans(config.runFolder, environment);
  const loadTimes = await LoadTimes.open(config.loadTimesFile, environment.log);
  return new LocalEngineHost(config, loadTimes, environment);
}

class LocalEngineHost implements EngineHost {
  readonly #config: EngineHostConfig;
  readonly #loadTimes: LoadTimes;
  readonly #environment: Environment;
  /** By the key of their model; one stays when its engine has stopped, because it knows how that one behaved. */
  readonly #runners = new Map<string, EngineRunner>();
  readonly #listeners = new Set<{readonly call: () => void}>();
  #isClosed = false;
  #loadSeq = 0;

  constructor(config: EngineHostConfig, loadTimes: LoadTimes, environment: Environment) {
    this.#config = config;
    this.#loadTimes = loadTimes;
    this.#environment = environment;
  }

  reserve(model: StoredModel, options: ReserveOptions): Reservation | Busy | Refusal {
    if (this.#isClosed) return {kind: 'busy', reason: 'draining', record: undefined, retryAfterMs: 1_000};
    const runner = this.#runner(model);
    return runner instanceof EngineRunner ? runner.reserve(model, options) : runner;
  }

  load(model: StoredModel, wish: LoadWish): Refusal | undefined {
    const runner = this.#runner(model);
    return runner instanceof EngineRunner ? runner.load(model, wish) : runner;
  }

  logs(key: string, after: number): LogPage {
    return this.#runners.get(key)?.logs(after) ?? {lines: [], first: 0, next: 0};
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
    await this.#loadTimes.saved();
  }

  #runner(model: StoredModel): EngineRunner | Refusal {
    const {engine, runFolder, environment: variables} = this.#config;
    if (model.problem !== undefined) return {kind: 'refused', code: 'broken', message: model.problem};
    if (engine === undefined) {
      return {kind: 'refused', code: 'broken', message: `there is no llama-server on this node. ${installHint}`};
    }
    const known = this.#runners.get(model.key);
    if (known !== undefined) return known;
    const options = {
      launch: {command: engine.command, leadingArguments: engine.leadingArguments, runFolder, variables},
      settings: this.#config,
      policy: {...enginePolicy, ...this.#config.policy},
      keepAlive: {
        usualMs: this.#config.keepAliveMs,
        minMs: this.#config.keepAliveMsMin ?? 0,
        maxMs: this.#config.keepAliveMsMax ?? Infinity,
      },
      watch: {
        hung: {...hungPolicy, ...this.#config.hung},
        proof: {...proofPolicy, ...this.#config.proof},
      },
      loadTimes: this.#loadTimes,
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
