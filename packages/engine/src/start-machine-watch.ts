import {easyMachine} from '@hearsay/core';
import type {Environment, MachineState, MachineWatch} from '@hearsay/core';
import {readMachine} from './read-machine.ts';

/** A battery and a heat sink are slow. */
const lookEveryMs = 10_000;

/** A change of charge below this is nothing that others must hear of at once; the next beat tells it. */
const shareStep = 0.05;

export interface MachineWatchConfig {
  /** Where Linux tells of the machine. */
  readonly root: string;
  readonly platform: string;
}

/** Looks every ten seconds; on systems other than Linux nothing is known yet. */
export function startMachineWatch(
  {root, platform}: MachineWatchConfig,
  {clock}: Pick<Environment, 'clock'>,
): MachineWatch {
  const listeners = new Set<{readonly call: () => void}>();
  const isTold = platform === 'linux';
  let state: MachineState = isTold ? readMachine(root, false) : easyMachine;
  let told = state;
  let timer: Disposable | undefined;

  function look(): void {
    state = readMachine(root, state.isHot);
    if (isNews(told, state)) {
      told = state;
      for (const {call} of listeners) call();
    }
    timer = clock.after(lookEveryMs, look);
  }
  if (isTold) timer = clock.after(lookEveryMs, look);

  return {
    state: () => state,
    onChange(call) {
      const listener = {call};
      listeners.add(listener);
      return {[Symbol.dispose]: () => void listeners.delete(listener)};
    },
    [Symbol.dispose]: () => timer?.[Symbol.dispose](),
  };
}

function isNews(before: MachineState, now: MachineState): boolean {
  if (before.isHot !== now.isHot) return true;
  if (before.batteryShare === undefined || now.batteryShare === undefined) {
    return before.batteryShare !== now.batteryShare;
  }
  return Math.abs(before.batteryShare - now.batteryShare) >= shareStep;
}
