import {formatBytes} from '@hearsay/core';
import type {EngineSize} from '@hearsay/core';

interface Lack {
  readonly name: string;
  /** The least that it would be started with, and what that takes. */
  readonly size: EngineSize;
  readonly needBytes: number;
  /** What it could have if every other model went that is not kept. */
  readonly canHaveBytes: number;
  /** What models have that their owner keeps. */
  readonly keptBytes: number;
  /** What all models may take; less than the machine has where the owner has set so. */
  readonly allowedBytes: number;
  readonly machineBytes: number;
}

/** Pure: why a model does not fit here, not even alone, and what can be done about it. */
export function explainMissing(lack: Lack): string {
  const {name, size, needBytes, canHaveBytes, keptBytes, allowedBytes, machineBytes} = lack;
  const slots = size.slots === 1 ? '1 slot' : `${size.slots} slots`;
  const need = `${name} needs at least ${formatBytes(needBytes)} of memory for ${slots} of ${size.context} tokens`;
  const missing = (thereBytes: number): string => `${formatBytes(Math.ceil(needBytes - thereBytes))} are missing`;
  if (needBytes > machineBytes)
    return `${need}, and models can have ${formatBytes(machineBytes)} here: ${missing(machineBytes)}`;
  if (needBytes > allowedBytes) {
    return `${need}, and engine.memory lets models have ${formatBytes(allowedBytes)} here: ${missing(allowedBytes)}; raise it`;
  }
  const left = formatBytes(Math.max(0, Math.floor(canHaveBytes)));
  if (canHaveBytes + keptBytes >= needBytes) {
    return `${need}, but models that are kept loaded leave only ${left} here: ${missing(canHaveBytes)}; stop one of them`;
  }
  return `${need}, but other programs leave only ${left} here: ${missing(canHaveBytes)}; end some of them`;
}
