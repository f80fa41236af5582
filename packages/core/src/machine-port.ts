/** How the machine itself is, as far as its system tells; what is undefined nobody knows. */
export interface MachineState {
  /** Charge of its battery, 0…1, while it runs on it; undefined: it has other power, or nobody can tell. */
  readonly batteryShare: number | undefined;
  /** It makes itself slower so as not to become hotter. */
  readonly isHot: boolean;
}

/** Nothing is wrong with it, as far as one knows. */
export const easyMachine: MachineState = {batteryShare: undefined, isHot: false};

/** Looks at the machine now and then. */
export interface MachineWatch extends Disposable {
  state(): MachineState;
  /** Calls back after every change that others should know of, until disposed. */
  onChange(call: () => void): Disposable;
}

/** Below this charge a battery is kept for its owner. */
const batteryShareMin = 0.2;

/** Pure: requests of others would take what the owner needs. */
export function isBatteryLow(batteryShare: number | undefined): boolean {
  return batteryShare !== undefined && batteryShare < batteryShareMin;
}
