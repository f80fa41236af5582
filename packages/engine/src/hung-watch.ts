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
  /** Whether it will never answer again, although its process is there. */
  isEnding(msMax: number): Promise<boolean>;
  /** The same, but that it still says it is well. */
  isStuck(): Promise<boolean>;
}

/** What is wrong. */
export type Found = {readonly kind: 'hung'; readonly silentMs: number} | {readonly kind: 'ending'};

/** Pause after a failed look, and at most while somebody waits for an answer. */
const againMs = 1_000;

/**
 * Watches a ready engine. One that gives no token and no answer to `/health` hangs; one that was told to end from
 * outside (systemd signals all processes of a unit) leaves its clients without a word. Either is reported once.
 */
export class HungWatch implements Disposable {
  readonly #server: Watched;
  readonly #clock: Clock;
  readonly #policy: HungPolicy;
  readonly #isBusy: () => boolean;
  readonly #found: (what: Found) => void;
  #timer: Disposable | undefined;
  #isEnded = false;
  #received: number;
  #failures = 0;
  #heardMs: number;

  constructor(
    {server, isBusy}: {readonly server: Watched; readonly isBusy: () => boolean},
    clock: Clock,
    policy: HungPolicy,
    found: (what: Found) => void,
  ) {
    this.#server = server;
    this.#clock = clock;
    this.#policy = policy;
    this.#isBusy = isBusy;
    this.#found = found;
    this.#received = server.received;
    this.#heardMs = clock.monotonicMs();
    this.#lookAfter(this.#pauseMs());
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    this.#timer?.[Symbol.dispose]();
  }

  #pauseMs(): number {
    const {lookEveryMs} = this.#policy;
    return this.#isBusy() ? Math.min(againMs, lookEveryMs) : lookEveryMs;
  }

  #lookAfter(ms: number): void {
    this.#timer = this.#clock.after(ms, () => void this.#look());
  }

  async #look(): Promise<void> {
    const {lookMsMax} = this.#policy;
    const works = this.#hasReceived() || (await this.#server.answers(lookMsMax)) || this.#hasReceived();
    const isEnding = works ? await this.#server.isStuck() : await this.#server.isEnding(lookMsMax);
    if (this.#isEnded) return;
    if (isEnding) {
      this.#isEnded = true;
      return this.#found({kind: 'ending'});
    }
    this.#failures = works ? 0 : this.#failures + 1;
    if (works) this.#heardMs = this.#clock.monotonicMs();
    if (this.#failures < this.#policy.failuresMax) {
      return this.#lookAfter(works ? this.#pauseMs() : againMs);
    }
    this.#isEnded = true;
    this.#found({kind: 'hung', silentMs: this.#clock.monotonicMs() - this.#heardMs});
  }

  #hasReceived(): boolean {
    const before = this.#received;
    this.#received = this.#server.received;
    return this.#received !== before;
  }
}
