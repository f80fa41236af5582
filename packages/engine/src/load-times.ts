import {readFile} from 'node:fs/promises';
import {describeError} from '@hearsay/core';
import type {Log, StoredModel} from '@hearsay/core';
import {writeWhole} from './write-whole.ts';

/** More models than one machine loads in its life; the one not loaded for the longest time is forgotten first. */
const modelsMax = 500;

/** Assumed time of the very first load on this machine. */
const msAtFirst = 5_000;

interface Load {
  readonly ms: number;
  readonly bytes: number;
}

/**
 * How long loads took on this machine, kept in a file, so that the time that is left can be told from the first
 * moment. Losing the file loses only that.
 */
export class LoadTimes {
  readonly #file: string | undefined;
  readonly #log: Log;
  readonly #loads: Map<string, Load>;
  #written: Promise<void> = Promise.resolve();

  private constructor(file: string | undefined, loads: Map<string, Load>, log: Log) {
    this.#file = file;
    this.#loads = loads;
    this.#log = log;
  }

  static async open(file: string | undefined, log: Log): Promise<LoadTimes> {
    return new LoadTimes(file, file === undefined ? new Map() : await readLoads(file), log);
  }

  /** As long as last time; for a new model as long as the last load of another, in proportion to the size. */
  expectedMs(model: StoredModel): number {
    const known = this.#loads.get(model.key);
    if (known !== undefined) return known.ms;
    const last = [...this.#loads.values()].at(-1);
    return last === undefined ? msAtFirst : (last.ms * model.sizeBytes) / Math.max(1, last.bytes);
  }

  note({key, sizeBytes}: StoredModel, ms: number): void {
    this.#loads.delete(key); // moves it to the end
    this.#loads.set(key, {ms: Math.round(ms), bytes: sizeBytes});
    const [oldest] = this.#loads.keys();
    if (this.#loads.size > modelsMax && oldest !== undefined) this.#loads.delete(oldest);
    this.#written = this.#written.then(() => this.#write());
  }

  /** Resolves when everything noted is on disk. */
  async saved(): Promise<void> {
    await this.#written;
  }

  async #write(): Promise<void> {
    if (this.#file === undefined) return;
    try {
      await writeWhole(this.#file, JSON.stringify({loads: [...this.#loads]}));
    } catch (error) {
      this.#log('warn', 'cannot remember how long a load took', {error: describeError(error)});
    }
  }
}

/** Whatever cannot be used is left out: the file is only a hint. */
async function readLoads(file: string): Promise<Map<string, Load>> {
  try {
    const parsed: unknown = JSON.parse(await readFile(file, 'utf8'));
    const loads: unknown = typeof parsed === 'object' && parsed !== null && 'loads' in parsed ? parsed.loads : [];
    return new Map((Array.isArray(loads) ? loads : []).flatMap(readLoad).slice(-modelsMax));
  } catch {
    return new Map(); // missing, as at the first start, or damaged
  }
}

function readLoad(entry: unknown): readonly (readonly [string, Load])[] {
  if (!Array.isArray(entry)) return [];
  const [key, load]: unknown[] = entry;
  if (typeof key !== 'string' || typeof load !== 'object' || load === null) return [];
  if (!('ms' in load && 'bytes' in load)) return [];
  const {ms, bytes} = load;
  const isUsable = typeof ms === 'number' && typeof bytes === 'number' && ms >= 0 && bytes > 0;
  return isUsable ? [[key, {ms, bytes}]] : [];
}
