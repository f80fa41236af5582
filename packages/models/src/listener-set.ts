import type {Clock} from '@hearsay/core';

/** Tells listeners that something changed, once for many changes in a row. */
export interface ListenerSet extends Disposable {
  readonly add: (listener: () => void) => Disposable;
  readonly changed: () => void;
}

/** A scan that finds ten files is one change to whoever listens. */
const bundleMs = 50;

export function listenerSet(clock: Clock): ListenerSet {
  const listeners = new Set<{readonly call: () => void}>();
  let timer: Disposable | undefined;
  let closed = false;

  function tell(): void {
    timer = undefined;
    for (const {call} of listeners) call();
  }

  return {
    add: call => {
      const listener = {call}; // one function may be added twice and removed once
      listeners.add(listener);
      return {
        [Symbol.dispose]: () => {
          listeners.delete(listener);
        },
      };
    },
    changed: () => {
      if (!closed) timer ??= clock.after(bundleMs, tell);
    },
    [Symbol.dispose]: () => {
      closed = true;
      timer?.[Symbol.dispose]();
      listeners.clear();
    },
  };
}
