import {readFile} from 'node:fs/promises';
import {join} from 'node:path';
import {z} from 'zod';

/** The daemon that owns a data folder, as it says itself. */
export interface RunningDaemon {
  readonly pid: number;
  /** Its gateway; undefined while it starts. */
  readonly url?: string | undefined;
}

const schema = z.object({pid: z.int().positive(), url: z.string().optional()});

/** Undefined when none runs, or when the file is what a killed one has left. */
export async function readRunningDaemon(folder: string): Promise<RunningDaemon | undefined> {
  try {
    const daemon = schema.parse(JSON.parse(await readFile(join(folder, 'daemon.json'), 'utf8')));
    process.kill(daemon.pid, 0); // throws when there is no such process; a wrong guess only costs a wrong address
    return daemon;
  } catch {
    return undefined;
  }
}
