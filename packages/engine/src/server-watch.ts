import type {Environment} from '@hearsay/core';
import {CancelProof} from './cancel-proof.ts';
import type {ProofPolicy} from './cancel-proof.ts';
import {HungWatch} from './hung-watch.ts';
import type {Found, HungPolicy} from './hung-watch.ts';
import type {LlamaServer} from './llama-server.ts';
import type {Slot} from './slots.ts';

export interface WatchPolicy {
  readonly hung: HungPolicy;
  readonly proof: ProofPolicy;
}

/**
 * Watches a ready server for what only killing it cures: it hangs, was told to end and cannot, or does not let go of
 * cancelled requests.
 */
export class ServerWatch implements Disposable {
  readonly #hung: HungWatch;
  readonly #proof: CancelProof;

  /** `ours`: how many requests it works on as far as we know. */
  constructor(server: LlamaServer, policy: WatchPolicy, ours: () => number, {clock}: Environment) {
    const isBusy = (): boolean => ours() > 0;
    this.#hung = new HungWatch({server, isBusy}, clock, policy.hung, found => server.kill(reasonFor(found)));
    this.#proof = new CancelProof(policy.proof, {
      clock,
      working: () => server.workingSlots(),
      ours,
      overdue: () => {
        // Requests that still want its answer are not hurt for that.
        if (ours() === 0) server.kill('it did not end cancelled requests, so it was replaced');
      },
    });
  }

  /** As `CancelProof.cut`. */
  async cut(slot: Slot, free: () => void): Promise<void> {
    await this.#proof.cut(slot, free);
  }

  [Symbol.dispose](): void {
    this.#hung[Symbol.dispose]();
    this.#proof[Symbol.dispose]();
  }
}

function reasonFor(found: Found): string {
  switch (found.kind) {
    case 'hung':
      return `it hung: no answer for ${Math.round(found.silentMs / 1000)} s, so it was killed`;
    case 'ending':
      return 'it was told to end from outside (SIGTERM), which leaves its answers unfinished, so it was killed';
  }
}
