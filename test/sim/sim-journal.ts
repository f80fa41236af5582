import {compactFacts, replayDecisions} from '@hearsay/core';
import type {Journal, RequestEvent, RequestId} from '@hearsay/core';

/** A journal that keeps nothing but an eye on laws 9 and 10. */
export class SimJournal implements Journal {
  readonly #breach: (words: string) => void;
  readonly #open = new Map<RequestId, 'entry' | 'worker'>();

  constructor(breach: (words: string) => void) {
    this.#breach = breach;
  }

  /** Requests that have come and not ended. */
  get open(): number {
    return this.#open.size;
  }

  note(request: RequestId, event: RequestEvent): void {
    if (event.kind === 'arrived') this.#open.set(request, event.role);
    else if (!this.#open.has(request)) this.#breach(`law 10: ${request} went on after its end: ${event.kind}`);
    if (event.kind === 'ended') this.#open.delete(request);
    if (event.kind !== 'decided') return;
    const kept = {...event, facts: compactFacts(event.facts)};
    const differing = replayDecisions([{sinceMs: 0, event: kept}]).filter(({agrees}) => !agrees);
    for (const {differences} of differing)
      this.#breach(`law 9: ${request} is decided otherwise: ${differences.join()}`);
  }

  requests(): readonly never[] {
    return [];
  }

  find(): undefined {
    return undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
