import {randomBytes} from 'node:crypto';
import {readFileSync} from 'node:fs';
import {hostname} from 'node:os';
import {setTimeout as wait} from 'node:timers/promises';
import type {Clock, Random} from '@hearsay/core';

/** The real time, chance and environment variables: the only place in the packages that asks the system for them. */

/** Longest delay that a Node timer can hold; a longer one would fire at once. */
const timerMsMax = 2 ** 31 - 1;

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: async (ms, signal) => {
    signal?.throwIfAborted();
    const rest = Math.max(0, ms);
    try {
      await wait(Math.min(rest, timerMsMax), undefined, signal === undefined ? {} : {signal});
    } catch (error) {
      signal?.throwIfAborted(); // with the signal's own reason
      throw error;
    }
    if (rest > timerMsMax) await systemClock.sleep(rest - timerMsMax, signal);
  },
  after: (ms, run) => {
    let timer: NodeJS.Timeout | undefined;
    let restMs = Math.max(0, ms);
    function next(): void {
      const stepMs = Math.min(restMs, timerMsMax);
      restMs -= stepMs;
      timer = setTimeout(restMs > 0 ? next : run, stepMs).unref();
    }
    if (ms < Infinity) next();
    return {[Symbol.dispose]: () => clearTimeout(timer)};
  },
};

/** Asking the system costs the same for one byte as for thousands; this is enough for some hundred requests. */
const poolBytes = 8192;
let pool = Buffer.alloc(0);

/** Bytes that nobody else has had or will have. */
function freshBytes(length: number): Buffer {
  if (length > poolBytes) return randomBytes(length);
  if (pool.length < length) pool = randomBytes(poolBytes);
  const taken = pool.subarray(0, length);
  pool = pool.subarray(length);
  return taken;
}

export const systemRandom: Random = {
  next: () => freshBytes(6).readUIntBE(0, 6) / 2 ** 48,
  bytes: length => Uint8Array.from(freshBytes(length)),
};

/** Environment variables by name. */
export type Variables = Readonly<Record<string, string | undefined>>;

export function systemVariables(): Variables {
  return process.env;
}

/** How many files and connections the system lets this process have open at once; undefined: nobody has set a limit. */
export function openFilesMax(limitsFile: string = '/proc/self/limits'): number | undefined {
  const limits = readLimits(limitsFile);
  if (limits === undefined) return reportedFilesMax();
  const limit = /^Max open files\s+(?<soft>\d+)\s/mu.exec(limits)?.groups?.['soft'];
  return limit === undefined ? undefined : Number(limit);
}

/** What Linux tells; elsewhere undefined. */
function readLimits(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined; // not Linux, or a sandbox that hides it
  }
}

/** Node tells it everywhere, together with all that it knows of this process, which takes it 3 ms. */
export function reportedFilesMax(): number | undefined {
  Reflect.set(process.report, 'excludeNetwork', true); // else it asks for the names of all addresses
  const report: {userLimits?: {open_files?: {soft?: unknown}}} = JSON.parse(JSON.stringify(process.report.getReport()));
  const limit = report.userLimits?.open_files?.soft;
  return typeof limit === 'number' ? limit : undefined;
}

/** This machine's name without its domain. */
export function machineName(): string {
  return hostname().split('.', 1)[0] || 'unnamed';
}
