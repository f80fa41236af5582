import type {Clock} from '@hearsay/core';

/** How long an engine may be silent before it counts as hung. */
export interface HungPolicy {
  /** Between two looks at an engine that works. */
  readonly lookEveryMs: number;
  /** A look without an answer for this long has failed, and the next one follows soon. */
  readonly lookMsMax: number;
  /**
   * Failed looks in a row until it is hung. Counted, not timed: after a suspend of the whole machine one look may fail
   * although nothing is wrong.
   */
  readonly failuresMax: number;
}

/** What is looked at. */
export interface Watched {
  /** Grows with every piece of an answer. */
  readonly received: number;
  /** Whether `/health` answers in time. */
  answers(msMax: number): Promise<boolean>;
}

/** Pause after a failed look. */
const againMs = 1_000;

/** Watches a ready engine: one that gives no token and no answer to `/health` hangs, and is reported once. */
export class HungWatch implements Disposable {
  readonly #server: Watched;
  readonly #clock: Clock;
  readonly #policy: HungPolicy;
  readonly #hung: (silentMs: number) => void;
  #timer: Disposable | undefined;
  #isEnded = false;
  #received: number;
  #failures = 0;
  #heardMs: number;

  constructor(server: Watched, clock: Clock, policy: HungPolicy, hung: (silentMs: number) => void) {
    this.#server = server;
    this.#clock = clock;
    this.#policy = policy;
    this.#hung = hung;
    this.#received = server.received;
    this.#heardMs = clock.monotonicMs();
    this.#lookAfter(policy.lookEveryMs);
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    this.#timer?.[Symbol.dispose]();
  }

  #lookAfter(ms: number): void {
    this.#timer = this.#clock.after(ms, () => void this.#look());
  }

  async #look(): Promise<void> {
    const works = this.#hasReceived() || (await this.#server.answers(this.#policy.lookMsMax)) || this.#hasReceived();
    if (this.#isEnded) return;
    this.#failures = works ? 0 : this.#failures + 1;
    if (works) this.#heardMs = this.#clock.monotonicMs();
    if (this.#failures < this.#policy.failuresMax) {
      return this.#lookAfter(works ? this.#policy.lookEveryMs : againMs);
    }
    this.#isEnded = true;
    this.#hung(this.#clock.monotonicMs() - this.#heardMs);
  }

  #hasReceived(): boolean {
    const before = this.#received;
    this.#received = this.#server.received;
    return this.#received !== before;
  }
}
