import {changeOperator, formatOperator, idleOperator, parseOperator} from '@hearsay/core';
import type {NodeFlags, OperatorChange, OperatorState, TextStore} from '@hearsay/core';

/** The one owner of what the owner of this machine has said about it. */
export interface OperatorKeeper {
  readonly state: () => OperatorState;
  readonly flags: () => NodeFlags;
  /** Changes follow one another, so that none is lost. */
  readonly change: (change: OperatorChange) => Promise<OperatorState>;
}

/** Reads the state of the last run. `changed` is called after every change that holds. */
export async function keepOperator(store: TextStore, changed: () => void): Promise<OperatorKeeper> {
  const text = await store.read();
  let state = text === undefined ? idleOperator : parseOperator(text);
  let last: Promise<unknown> = Promise.resolve();

  async function apply(change: OperatorChange): Promise<OperatorState> {
    const next = changeOperator(state, change);
    await store.write(formatOperator(next));
    state = next;
    changed();
    return next;
  }

  return {
    state: () => state,
    flags: () => ({draining: state.draining, paused: state.paused}),
    change(change) {
      const applied = last.then(async () => apply(change));
      last = applied.catch(() => undefined); // the caller is told; the next change starts from what holds
      return applied;
    },
  };
}
