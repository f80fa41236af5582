import {fullSize, guessHardware} from '@hearsay/core';
import type {Busy, EngineHost, EnginePolicy, EngineSnapshot, LoadedFacts} from '@hearsay/core';
import type {Environment, HardwareFacts, LoadWish, LogPage, MemoryFacts, Refusal, Reservation} from '@hearsay/core';
import type {ReserveOptions, StoredModel} from '@hearsay/core';
import {busyFor} from './busy-for.ts';
import type {ProofPolicy} from './cancel-proof.ts';
import {EngineRunner} from './engine-runner.ts';
import type {HungPolicy} from './hung-watch.ts';
import {installHint} from './install-hint.ts';
import {lacksDevices} from './lacks-devices.ts';
import {listDevices} from './list-devices.ts';
import {LoadTimes} from './load-times.ts';
import {memoryMeter} from './measure-memory.ts';
import {openMemoryNotes} from './memory-notes.ts';
import {MemoryProbe} from './memory-probe.ts';
import {ModelNeeds} from './model-needs.ts';
import type {ModelSettings} from './model-needs.ts';
import {reapOrphans} from './pid-files.ts';
import {readProcessor} from './read-processor.ts';
import {RoomKeeper} from './room-keeper.ts';
import type {Tenant} from './room-deps.ts';
import {within} from './within.ts';

export interface EngineHostConfig {
  /** How to start llama-server; undefined when this machine has none: then every reservation is refused and says so. */
  readonly engine:
    | {readonly command: string; readonly leadingArguments: readonly string[]; readonly description: string}
    | undefined;
  /** Where running engines are noted. Belongs to this host alone. */
  readonly runFolder: string;
  /** Most requests that one engine runs at the same time; fewer where memory is short. */
  readonly slots: number;
  /** Most context of one slot, in tokens; undefined: a fair share of what fits. */
  readonly contextMax: number | undefined;
  /** What the owner wants for single models, by their names. */
  readonly models?: Readonly<Record<string, ModelSettings>> | undefined;
  /** What all engines together may take, in bytes; undefined: what the machine has. */
  readonly memoryBytes?: number | undefined;
  /** Where it is remembered how much memory models took; undefined: nowhere. */
  readonly memoryFile?: string | undefined;
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
  /** Told what an engine says of its model, each time that one has become ready. */
  readonly onLoaded?: (model: StoredModel, told: LoadedFacts) => void;
}

/** A start does not wait longer for drivers that wake; until they have, nothing is promised. */
const devicesWithinMs = 3_000;

/** What a slot is shown with before its engine has been started the first time. */
const contextUntilKnown = 8192;

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
  await using stack = new AsyncDisposableStack();
  const notes = stack.use(await openMemoryNotes(config.memoryFile, environment));
  const needs = new ModelNeeds({...config, engine: config.engine?.description ?? ''}, notes, environment.clock);
  await reapOrphans(config.runFolder, environment);
  const loadTimes = await LoadTimes.open(config.loadTimesFile, environment.log);
  const {engine} = config;
  const closing = new AbortController();
  stack.defer(() => closing.abort());
  const devices = async () => {
    const hasNone = engine === undefined || (await lacksDevices(engine.command, config.environment));
    return hasNone ? [] : listDevices(engine, environment, closing.signal);
  };
  const probe = new MemoryProbe({ram: memoryMeter(environment.clock), devices}, environment);
  await within(environment.clock, devicesWithinMs, probe.look());
  return new LocalEngineHost({config, needs, probe, loadTimes, opened: stack.move()}, environment);
}

interface HostParts {
  readonly config: EngineHostConfig;
  readonly needs: ModelNeeds;
  readonly probe: MemoryProbe;
  readonly loadTimes: LoadTimes;
  /** Closed after the last engine. */
  readonly opened: AsyncDisposable;
}

class LocalEngineHost implements EngineHost {
  readonly #config: EngineHostConfig;
  readonly #loadTimes: LoadTimes;
  readonly #environment: Environment;
  /** By the key of their model; one stays when its engine has stopped, because it knows how that one behaved. */
  readonly #runners = new Map<string, EngineRunner>();
  readonly #listeners = new Set<{readonly call: () => void}>();
  readonly #needs: ModelNeeds;
  readonly #room: RoomKeeper;
  readonly #opened: AsyncDisposable;
  readonly #probe: MemoryProbe;
  /** Read once, because the clock of a processor changes from one moment to the next. */
  readonly #processor = readProcessor();
  #isClosed = false;
  #loadSeq = 0;

  constructor({config, needs, probe, loadTimes, opened}: HostParts, environment: Environment) {
    this.#config = config;
    this.#loadTimes = loadTimes;
    this.#environment = environment;
    this.#needs = needs;
    this.#opened = opened;
    this.#probe = probe;
    this.#room = new RoomKeeper({
      ...environment,
      probe,
      needs,
      budgetBytes: config.memoryBytes,
      tenants: () => [...this.#runners.values()].map(runner => this.#tenant(runner.snapshot())),
      evict: async key => this.stop(key),
    });
  }

  reserve(model: StoredModel, options: ReserveOptions): Reservation | Busy | Refusal {
    if (this.#isClosed) return busyFor('draining', 1_000);
    const runner = this.#runner(model);
    if (!(runner instanceof EngineRunner)) return runner;
    if (this.#room.isYielding(model.key)) return busyFor('memory', 1_000);
    const anew = this.#enlarges(model, runner, options.contextTokens);
    const answer = this.#allot(model, runner, options.force);
    if (answer !== undefined) return answer;
    const reservation = runner.reserve(model, options, anew);
    if (reservation.kind === 'accepted') this.#room.used(model.key);
    return reservation;
  }

  load(model: StoredModel, wish: LoadWish): Refusal | undefined {
    const runner = this.#runner(model);
    if (!(runner instanceof EngineRunner)) return runner;
    this.#needs.ask(model.key, wish);
    if (runner.snapshot().state === 'stopped') this.#needs.want(model.key, undefined); // that was for another start
    const answer = this.#allot(model, runner, true);
    return answer?.kind === 'refused' ? answer : runner.load(model, wish);
  }

  logs(key: string, after: number): LogPage {
    return this.#runners.get(key)?.log.page(after) ?? {lines: [], first: 0, next: 0};
  }

  async stop(key: string): Promise<void> {
    this.#needs.ask(key, undefined);
    await this.#runners.get(key)?.stop();
  }

  /**
   * A request may want more context than others get: it is what the next start goes by. True when an engine is to be
   * started anew for that, which happens once, when it is idle and no other has to go for it; none ever shrinks (R106).
   */
  #enlarges(model: StoredModel, runner: EngineRunner, contextTokens: number | undefined): boolean {
    const {key} = model;
    const {state, busy, queued, context} = runner.snapshot();
    const before = this.#needs.wanted(key);
    if (state === 'stopped') this.#needs.want(key, contextTokens);
    if (contextTokens === undefined || contextTokens <= Math.max(context, before ?? 0)) return false;
    if (state !== 'ready' || busy + queued > 0) return false;
    this.#needs.want(key, contextTokens);
    const most = Math.min(contextTokens, fullSize(this.#needs.wish(model), model.contextMax).context);
    const enlarges = most > context && this.#room.contextAnew(model) >= most;
    if (!enlarges) this.#needs.want(key, before);
    return enlarges;
  }

  /** Asks for memory where the engine must be started first. Undefined: it has or may have some. */
  #allot(model: StoredModel, runner: EngineRunner, force: boolean): Busy | Refusal | undefined {
    if (runner.snapshot().state !== 'stopped') return undefined;
    const answer = this.#room.ask(model, force);
    if ('kind' in answer) return answer;
    runner.resize(answer);
    return undefined;
  }

  engines(): readonly EngineSnapshot[] {
    const all = [...this.#runners.values()].map(runner => runner.snapshot());
    return all.filter(({state, busy, queued}) => state !== 'stopped' || busy + queued > 0);
  }

  memory(): MemoryFacts {
    return this.#room.memory();
  }

  hardware(): HardwareFacts {
    return guessHardware({devices: this.#probe.places(), processor: this.#processor});
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
    await this.#opened[Symbol.asyncDispose]();
  }

  #tenant({key, model, state, busy, queued, waitMs, loadMs = 0, processId}: EngineSnapshot): Tenant {
    const isKept = this.#needs.settings(model).keep === true;
    return {key, state, isUsed: busy + queued > 0, isKept, loadMs, waitMs, processId};
  }

  #runner(model: StoredModel): EngineRunner | Refusal {
    const {engine, runFolder, environment: variables} = this.#config;
    const {keepAliveMs, keepAliveMsMin = 0, keepAliveMsMax = Infinity} = this.#config;
    if (model.problem !== undefined) return {kind: 'refused', code: 'broken', message: model.problem};
    if (engine === undefined) {
      return {kind: 'refused', code: 'broken', message: `there is no llama-server on this node. ${installHint}`};
    }
    const known = this.#runners.get(model.key);
    if (known !== undefined) return known;
    const {keep = false} = this.#needs.settings(model);
    const settings = {...this.#config, contextMax: this.#config.contextMax ?? contextUntilKnown};
    const options = {
      launch: {
        command: engine.command,
        leadingArguments: engine.leadingArguments,
        runFolder,
        variables,
        prepare: async (started: StoredModel) => {
          const size = await this.#room.enter(started);
          runner.resize(size);
          const {slots, context: contextMax} = size;
          return {...settings, slots, contextMax, extraArguments: this.#needs.ownArguments(started)};
        },
      },
      settings,
      policy: {...enginePolicy, ...this.#config.policy},
      keepAlive: keep
        ? {usualMs: Infinity, minMs: Infinity, maxMs: Infinity}
        : {usualMs: keepAliveMs, minMs: keepAliveMsMin, maxMs: keepAliveMsMax},
      watch: {
        hung: {...hungPolicy, ...this.#config.hung},
        proof: {...proofPolicy, ...this.#config.proof},
      },
      loadTimes: this.#loadTimes,
      loaded: this.#config.onLoaded ?? (() => {}),
      changed: () => this.#changed(),
    };
    const runner = new EngineRunner(model, options, this.#environment);
    this.#runners.set(model.key, runner);
    return runner;
  }

  #changed(): void {
    this.#loadSeq += 1;
    this.#room.changed();
    for (const {call} of this.#listeners) call();
  }
}
