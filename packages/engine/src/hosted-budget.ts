import {describeError, Fault} from '@hearsay/core';
import type {Environment, TextStore} from '@hearsay/core';

/** Tokens that a request may cost, taken before it is sent. */
export interface Spending extends Disposable {
  /** What it did cost. Without it the whole sum stays spent; disposed before it was sent, it is given back. */
  settle(tokens: number | undefined): void;
  /** On disk, so that no crash gives tokens of a request back that has been sent. */
  sent(): Promise<void>;
}

interface Month {
  readonly month: string;
  readonly tokens: Readonly<Record<string, number>>;
}

/**
 * What each hosted service has cost in this month (UTC), kept over restarts. Tokens are taken in the same synchronous
 * step in which it is checked that they are there.
 */
export class HostedBudget {
  readonly #store: TextStore;
  readonly #environment: Environment;
  #month: string;
  readonly #spent: Map<string, number>;
  #writing: Promise<void> = Promise.resolve();

  private constructor(before: Month | undefined, store: TextStore, environment: Environment) {
    this.#store = store;
    this.#environment = environment;
    this.#month = this.#now();
    this.#spent = new Map(before?.month === this.#month ? Object.entries(before.tokens) : []);
  }

  static async open(store: TextStore, environment: Environment): Promise<HostedBudget> {
    return new HostedBudget(parseMonth(await store.read()), store, environment);
  }

  /** Undefined when the month has fewer tokens left. */
  take(service: string, tokens: number, tokensPerMonth: number): Spending | undefined {
    this.#turn();
    if (this.spent(service) + tokens > tokensPerMonth) return undefined;
    const month = this.#month;
    this.#add(service, tokens, month);
    let open = tokens;
    let isSent = false;
    const settle = (real: number | undefined): void => {
      if (open === 0) return;
      if (real !== undefined) this.#add(service, real - open, month);
      open = 0;
      void this.#save();
    };
    return {
      settle,
      sent: async () => {
        isSent = true;
        await this.#save();
      },
      [Symbol.dispose]: () => settle(isSent ? undefined : 0),
    };
  }

  /** Tokens of this month. */
  spent(service: string): number {
    this.#turn();
    return this.#spent.get(service) ?? 0;
  }

  #add(service: string, tokens: number, month: string): void {
    if (month === this.#month) this.#spent.set(service, (this.#spent.get(service) ?? 0) + tokens);
  }

  #turn(): void {
    const month = this.#now();
    if (month === this.#month) return;
    this.#month = month;
    this.#spent.clear();
  }

  #now(): string {
    return new Date(this.#environment.clock.wallMs()).toISOString().slice(0, 7);
  }

  /** Writes one after the other, always the newest sums. */
  async #save(): Promise<void> {
    this.#writing = this.#writeAfter(this.#writing);
    await this.#writing;
  }

  async #writeAfter(before: Promise<void>): Promise<void> {
    await before;
    try {
      const month: Month = {month: this.#month, tokens: Object.fromEntries(this.#spent)};
      await this.#store.write(JSON.stringify(month));
    } catch (error) {
      const {log} = this.#environment;
      log('error', 'what hosted services have cost could not be written', {error: describeError(error)});
    }
  }
}

/** Nothing is spent only when there is no file: a damaged one must not lift the limit of the month. */
function parseMonth(text: string | undefined): Month | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (isMonth(value)) return value;
  } catch (cause) {
    throw damaged(cause);
  }
  throw damaged(undefined);
}

function damaged(cause: unknown): Fault {
  const message = 'hosted.json in the data folder is damaged; remove it to count the tokens of this month from zero';
  return new Fault('BAD_FILE', message, {cause});
}

function isMonth(value: unknown): value is Month {
  return (
    typeof value === 'object' &&
    value !== null &&
    'month' in value &&
    typeof value.month === 'string' &&
    'tokens' in value &&
    typeof value.tokens === 'object' &&
    value.tokens !== null &&
    Object.values(value.tokens).every(tokens => typeof tokens === 'number')
  );
}
