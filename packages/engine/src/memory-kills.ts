import {readFile} from 'node:fs/promises';

/**
 * Linux counts here how often it has ended a process for want of memory, in the whole machine or in one container's
 * limits. It does not say which process; a child that was killed in the same time was most likely the one.
 */
const countersFile = '/proc/vmstat';

/** Tells whether the system has killed for want of memory since this was made. */
export class MemoryKills {
  readonly #file: string;
  readonly #before: Promise<number | undefined>;

  constructor(file: string = countersFile) {
    this.#file = file;
    this.#before = killsIn(file);
  }

  /** Undefined where the system does not tell. */
  async haveGrown(): Promise<boolean | undefined> {
    const before = await this.#before;
    const now = await killsIn(this.#file);
    return before === undefined || now === undefined ? undefined : now > before;
  }
}

async function killsIn(file: string): Promise<number | undefined> {
  try {
    const count = /^oom_kill (\d+)$/mu.exec(await readFile(file, 'utf8'))?.[1];
    return count === undefined ? undefined : Number(count);
  } catch {
    return undefined; // no Linux, or an old one
  }
}
