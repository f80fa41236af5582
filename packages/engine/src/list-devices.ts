import {describeError} from '@hearsay/core';
import type {Environment} from '@hearsay/core';
import {runCommand} from './run-command.ts';

/** A place for models beside system RAM, as llama-server sees it. */
export interface Device {
  /** llama-server's own name for it: `CUDA0`, `Metal`. */
  readonly name: string;
  /** For people: `NVIDIA GeForce RTX 4090`. */
  readonly description: string;
  readonly totalBytes: number;
  readonly freeBytes: number;
}

/** Drivers take half a second to wake, on a machine that just came out of sleep a few. */
const listTimeLimitMs = 20_000;

/** Machines for this have eight; a list without end is no list. */
const devicesMax = 64;

const mebibyte = 1024 * 1024;

/** `  NAME: DESCRIPTION (TOTAL MiB, FREE MiB free)`; descriptions may have parentheses of their own. */
const deviceLine: RegExp = /^ {2}(?<name>\S[^:]*): (?<description>.*)\((?<total>\S+) MiB, (?<free>\S+) MiB free\)\s*$/u;

/**
 * Pure: the devices in what `llama-server --list-devices` prints. A device without a believable size (0, no number,
 * negative) is none: drivers say so when they do not know, most of all for memory that is shared with the processor.
 */
export function parseDevices(output: string): readonly Device[] {
  return output
    .split('\n')
    .flatMap((line): readonly Device[] => {
      const {name, description = '', total, free} = deviceLine.exec(line)?.groups ?? {};
      const totalBytes = toBytes(total);
      if (name === undefined || totalBytes === undefined || totalBytes === 0) return [];
      return [{name, description: description.trim(), totalBytes, freeBytes: Math.min(totalBytes, toBytes(free) ?? 0)}];
    })
    .slice(0, devicesMax);
}

function toBytes(mebibytes: string | undefined): number | undefined {
  const value = /^\d+$/u.test(mebibytes ?? '') ? Number(mebibytes) : Number.NaN;
  return Number.isSafeInteger(value * mebibyte) ? value * mebibyte : undefined;
}

/** Asks llama-server. None when it cannot tell, which the log says, and none when the signal ends the question. */
export async function listDevices(
  engine: {readonly command: string; readonly leadingArguments: readonly string[]},
  {clock, log}: Environment,
  signal?: AbortSignal,
): Promise<readonly Device[]> {
  try {
    const args = [...engine.leadingArguments, '--list-devices'];
    const {stdout} = await runCommand(engine.command, args, {timeLimitMs: listTimeLimitMs}, {clock}, signal);
    return parseDevices(stdout);
  } catch (error) {
    if (signal?.aborted === true) return [];
    log('warn', 'llama-server does not list its devices; models are fitted to system memory', {
      error: describeError(error),
    });
    return [];
  }
}
