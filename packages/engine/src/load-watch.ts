import type {Clock, EngineSnapshot, EngineStateName, StoredModel} from '@hearsay/core';
import {expectedWaitMs, remainingLoadMs} from './expected-wait.ts';
import type {LoadTimes} from './load-times.ts';

/** Times the loads of one engine. What it waits for memory before is no part of a load. */
export class LoadWatch {
  readonly #times: LoadTimes;
  readonly #clock: Clock;
  #startedMs = 0;

  constructor(times: LoadTimes, clock: Clock) {
    this.#times = times;
    this.#clock = clock;
  }

  begin(): void {
    this.#startedMs = this.#clock.monotonicMs();
  }

  /** It is loaded; the next one is expected to take as long. */
  end(model: StoredModel): void {
    this.#times.note(model, this.#clock.monotonicMs() - this.#startedMs);
  }

  /** Of a whole load. */
  expectedMs(model: StoredModel): number {
    return this.#times.expectedMs(model);
  }

  /** How far the load is that runs, of which so much is done as far as llama-server tells. */
  progress(model: StoredModel, share: number | undefined): NonNullable<EngineSnapshot['loading']> {
    const elapsedMs = this.#clock.monotonicMs() - this.#startedMs;
    return {share, remainingMs: remainingLoadMs(elapsedMs, this.expectedMs(model), share)};
  }

  /** How long a request that came now would wait until it runs. */
  waitMs(state: EngineStateName, model: StoredModel, now: LoadNow): number {
    const {remainingMs} = this.progress(model, now.share);
    return expectedWaitMs(state, {remainingMs, loadMs: this.expectedMs(model), slotsMs: now.slotsMs});
  }
}

interface LoadNow {
  readonly share: number | undefined;
  /** For a slot of an engine that is ready. */
  readonly slotsMs: number;
}
