import {countUse, Fault, leastSize, makeRoom, planStart, worthOf} from '@hearsay/core';
import type {Busy, EngineSize, EngineStateName, MemoryFacts, Refusal, Resident} from '@hearsay/core';
import type {StartPlan, StoredModel, UseCount} from '@hearsay/core';
import {busyFor} from './busy-for.ts';
import {explainMissing} from './explain-missing.ts';
import {residentMemory} from './resident-memory.ts';
import type {RoomDeps, Tenant} from './room-deps.ts';
import {within} from './within.ts';

interface Claim {
  readonly size: EngineSize;
  readonly needBytes: number;
  /** Nobody has come for it yet. */
  readonly isPromised: boolean;
}

/** Who waits for memory longer than this gets it next: the engines in the way take nothing new and go when idle. */
const patienceMs = 15_000;

/** Most models that wait for memory at the same time; each holds requests, and the last would wait for all others. */
const waitingMax = 16;

/** Free memory may come without any news, when another program ends. */
const lookAgainMs = 1_000;

/** What others are told may be so old: every request asks, and measuring reads a dozen files. */
const toldAgainMs = 250;

/** Starts whose memory was measured, but gone when they came: after so many the other program has won. */
const triesMax = 20;

/** Decides what may be loaded in the memory of this machine, and makes room for it. The only one that evicts. */
export class RoomKeeper {
  readonly #deps: RoomDeps;
  /** What each engine takes, from the decision to start it until its next one. */
  readonly #claims = new Map<string, Claim>();
  readonly #usage = new Map<string, UseCount>();
  /** Engines that take nothing new, so that another model gets its turn. */
  readonly #yielding = new Set<string>();
  #told: {readonly facts: MemoryFacts; readonly atMs: number} | undefined;
  #line: Promise<void> = Promise.resolve();
  /** In the line, and those of them to whom nothing is promised: who comes now must not overtake them. */
  #inLine = 0;
  #blocked = 0;
  #news = Promise.withResolvers<void>();

  constructor(deps: RoomDeps) {
    this.#deps = deps;
  }

  /** What models can use, and how much of it is free now. */
  memory(): MemoryFacts {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#told !== undefined && nowMs - this.#told.atMs < toldAgainMs) return this.#told.facts;
    const measured = this.#measured();
    const {kind, totalBytes} = measured;
    const freeBytes = this.#freeOf(measured, undefined, 0);
    const facts = {kind, totalBytes, freeBytes: Math.max(0, Math.min(totalBytes, freeBytes))};
    this.#told = {facts, atMs: nowMs};
    return facts;
  }

  /**
   * May this model be started now, and how large? With `force` it may also wait for its turn, then with the least size
   * until that comes. The room is promised from here on; `enter` makes it.
   */
  ask(model: StoredModel, force: boolean): EngineSize | Busy | Refusal {
    const least = leastSize(this.#deps.needs.wish(model), model.contextMax);
    const later = force && this.#blocked < waitingMax ? least : busyFor('memory', this.#shortestWaitMs());
    if (!this.#deps.probe.isCurrent()) {
      void this.#deps.probe.look();
      return later;
    }
    const decision = this.#decide(model);
    if (decision.kind === 'never') return {kind: 'refused', code: 'memory', message: this.#explainMissing(model)};
    if (decision.kind === 'wait' || this.#blocked > 0) return later;
    const {size} = decision;
    this.#claims.set(model.key, {size, needBytes: this.#needBytes(model, size), isPromised: true});
    return size;
  }

  /** The context that an engine would get if it were started anew and no other had to go for it. */
  contextAnew(model: StoredModel): number {
    const own = this.#deps.tenants().find(({key}) => key === model.key);
    const ownBytes = own === undefined ? 0 : this.#seenBytes(own, this.#measured().kind);
    const decision = this.#decide(model, ownBytes);
    return decision.kind === 'start' && decision.evict.length === 0 ? decision.size.context : 0;
  }

  /** Takes note of a request, so that what is used stays. */
  used(key: string): void {
    this.#usage.set(key, countUse(this.#usage.get(key), this.#deps.clock.monotonicMs()));
  }

  /** True while the engine takes nothing new because another model has waited too long for its memory. */
  isYielding(key: string): boolean {
    return this.#yielding.has(key);
  }

  /** An engine has changed: whoever waits looks again, and what a ready one takes is noted. */
  changed(): void {
    for (const {key, state, processId} of this.#deps.tenants()) {
      if (state === 'stopped' || state === 'broken') this.#yielding.delete(key);
      if (state === 'ready') this.#measure(key, processId);
    }
    this.#told = undefined;
    this.#wake();
  }

  /**
   * Called by an engine that is starting, before its process: waits for its turn, lets the least worth go, and resolves
   * with the size that it may have. Throws when it is stopped meanwhile, or when its memory is gone for good.
   */
  async enter(model: StoredModel): Promise<EngineSize> {
    const {key} = model;
    const isPromised = this.#claims.get(key)?.isPromised === true;
    if (!isPromised) this.#claims.delete(key);
    const done = Promise.withResolvers<void>();
    const turn = this.#line;
    this.#line = turn.then(() => done.promise);
    this.#inLine += 1;
    if (!isPromised) this.#blocked += 1;
    try {
      if (this.#inLine > 1) await turn;
      return await this.#makeRoomFor(model);
    } finally {
      this.#inLine -= 1;
      if (!isPromised) this.#blocked -= 1;
      this.#yielding.clear();
      done.resolve();
      this.#wake();
    }
  }

  async #makeRoomFor(model: StoredModel): Promise<EngineSize> {
    const {clock, probe, evict} = this.#deps;
    const sinceMs = clock.monotonicMs();
    let hasLooked = probe.isCurrent() && this.#measured().kind === 'ram'; // which is measured at every decision
    for (let tries = 0; ;) {
      this.#demandStarting(model);
      if (!hasLooked) await probe.look();
      hasLooked = true;
      const decision = this.#decide(model);
      if (decision.kind === 'never' && tries < triesMax) {
        tries += 1;
        if (tries === triesMax) throw new Fault('NO_CANDIDATE', this.#explainMissing(model));
        await this.#pause();
      } else if (decision.kind === 'start' && decision.evict.length > 0) {
        this.#deps.log('info', 'models are unloaded to make room', {for: model.names[0], count: decision.evict.length});
        await Promise.all(decision.evict.map(evict));
        hasLooked = this.#measured().kind === 'ram';
      } else if (decision.kind === 'start') {
        const {size} = decision;
        const needBytes = this.#needBytes(model, size);
        this.#claims.set(model.key, {size, needBytes, isPromised: false});
        this.#deps.needs.begin(model, size, {facts: probe.facts(), beside: this.#neighbours(model.key)});
        return size;
      } else {
        if (clock.monotonicMs() - sinceMs > patienceMs) this.#demandYield(model);
        await this.#pause();
      }
    }
  }

  /** What an engine really takes is its claim from then on. */
  #measure(key: string, processId: number | undefined): void {
    const {needs, probe} = this.#deps;
    const update = (): void => {
      const claim = this.#claims.get(key);
      const needBytes = needs.taken(key);
      if (claim !== undefined && needBytes !== undefined) this.#claims.set(key, {...claim, needBytes});
    };
    if (needs.measureProcess(key, processId)) update();
    if (!needs.awaitsDevice(key)) return;
    void probe.look().then(() => {
      needs.measureDevice(key, {facts: probe.facts(), beside: this.#neighbours(key)});
      return update();
    });
  }

  /** Others that have memory: while they come and go, what one takes cannot be told from outside. */
  #neighbours(key: string): string {
    return this.#residents(key)
      .map(resident => resident.key)
      .join();
  }

  #demandStarting({key}: StoredModel): void {
    const own = this.#deps.tenants().find(tenant => tenant.key === key);
    if (own?.state !== 'starting') throw new Fault('CANCELLED', 'it was stopped before there was memory for it');
  }

  async #pause(): Promise<void> {
    await within(this.#deps.clock, lookAgainMs, this.#news.promise);
  }

  #wake(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  /** The least worth of those that work now take nothing new; they are not disturbed in what they do. */
  #demandYield(model: StoredModel): void {
    const mayYield = new Set(
      this.#deps.tenants().flatMap(({key, state, isKept}) => (state === 'ready' && !isKept ? [key] : [])),
    );
    const others = this.#residents(model.key).map(other => ({...other, mayGo: mayYield.has(other.key)}));
    const least = leastSize(this.#deps.needs.wish(model), model.contextMax);
    const going = makeRoom(this.#needBytes(model, least), this.#freeBytes(model.key), others);
    for (const key of going ?? []) this.#yielding.add(key);
  }

  /** With memory that is still its own. */
  #decide(model: StoredModel, ownBytes = 0): StartPlan {
    const {kind} = this.#measured();
    return planStart({
      wish: this.#deps.needs.wish(model),
      contextTrained: model.contextMax,
      needBytes: size => this.#deps.needs.estimate(model, size, kind),
      freeBytes: this.#freeBytes(model.key, ownBytes),
      residents: this.#residents(model.key),
    });
  }

  #needBytes(model: StoredModel, size: EngineSize): number {
    return this.#deps.needs.estimate(model, size, this.#measured().kind);
  }

  #measured(): MemoryFacts {
    const {budgetBytes, probe} = this.#deps;
    const facts = probe.facts();
    return budgetBytes === undefined ? facts : {...facts, totalBytes: Math.min(facts.totalBytes, budgetBytes)};
  }

  /** What no engine of ours claims and nobody has taken: measured now, foreign programs included (R84). */
  #freeBytes(exceptKey: string | undefined, ownBytes = 0): number {
    return this.#freeOf(this.#measured(), exceptKey, ownBytes);
  }

  #freeOf({freeBytes, totalBytes, kind}: MemoryFacts, exceptKey: string | undefined, ownBytes: number): number {
    const tenants = this.#deps.tenants().filter(({key, state}) => key !== exceptKey && hasMemory(state));
    const unseen = tenants.map(tenant => this.#unseenBytes(tenant, kind)).reduce((sum, bytes) => sum + bytes, 0);
    return Math.min(freeBytes + ownBytes - unseen, totalBytes - sumNeeds(this.#residents(exceptKey)));
  }

  /** What it needs, but free memory does not show yet: pages of its file, and what it has not taken. */
  #unseenBytes({key, state, processId}: Tenant, kind: MemoryFacts['kind']): number {
    const needBytes = this.#claims.get(key)?.needBytes ?? 0;
    const resident = kind === 'ram' ? residentMemory(processId) : undefined;
    if (resident === undefined) return state === 'starting' ? needBytes : 0; // elsewhere, files count as taken
    return Math.max(0, needBytes - resident.anonymousBytes);
  }

  /** What would be free if it ended; pages of its file are already. */
  #seenBytes({key, processId}: Tenant, kind: MemoryFacts['kind']): number {
    const resident = kind === 'ram' ? residentMemory(processId) : undefined;
    return resident?.anonymousBytes ?? this.#claims.get(key)?.needBytes ?? 0;
  }

  #residents(exceptKey: string | undefined): readonly Resident[] {
    const nowMs = this.#deps.clock.monotonicMs();
    return this.#deps
      .tenants()
      .filter(({key, state}) => key !== exceptKey && hasMemory(state))
      .map(({key, state, isUsed, isKept, loadMs}) => ({
        key,
        needBytes: this.#claims.get(key)?.needBytes ?? 0,
        mayGo: state === 'ready' && !isUsed && !isKept,
        isKept: isKept && (state === 'starting' || state === 'ready'), // one that is told to go is not kept any more
        worth: worthOf(this.#usage.get(key), loadMs, nowMs),
      }));
  }

  #shortestWaitMs(): number {
    const waits = this.#deps.tenants().flatMap(({waitMs}) => (waitMs > 0 ? [waitMs] : []));
    return waits.length === 0 ? lookAgainMs : Math.min(...waits);
  }

  #explainMissing(model: StoredModel): string {
    const size = leastSize(this.#deps.needs.wish(model), model.contextMax);
    const {true: kept = [], false: others = []} = Object.groupBy(this.#residents(model.key), ({isKept}) => `${isKept}`);
    return explainMissing({
      name: model.names[0],
      size,
      needBytes: this.#needBytes(model, size),
      canHaveBytes: this.#freeBytes(model.key) + sumNeeds(others),
      keptBytes: sumNeeds(kept),
      allowedBytes: this.#measured().totalBytes,
      machineBytes: this.#deps.probe.facts().totalBytes,
    });
  }
}

function hasMemory(state: EngineStateName): boolean {
  return state === 'starting' || state === 'ready' || state === 'draining' || state === 'stopping';
}

function sumNeeds(residents: readonly Resident[]): number {
  return residents.reduce((total, {needBytes}) => total + needBytes, 0);
}
