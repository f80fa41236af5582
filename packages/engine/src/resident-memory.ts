import {readFileSync} from 'node:fs';

export interface ResidentMemory {
  /** With the pages of the model's file that it has read. */
  readonly totalBytes: number;
  /** What the system does not count as free meanwhile; pages of files it does. */
  readonly anonymousBytes: number;
}

/** What a process has in system memory now. Undefined where the system does not tell, or when it is gone. */
export function residentMemory(pid: number | undefined): ResidentMemory | undefined {
  if (process.platform !== 'linux' || pid === undefined) return undefined;
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const [total, anonymous, shared] = ['VmRSS', 'RssAnon', 'RssShmem'].map(name => kibibytesIn(status, name));
    if (total === undefined || anonymous === undefined) return undefined;
    return {totalBytes: total * 1024, anonymousBytes: (anonymous + (shared ?? 0)) * 1024};
  } catch {
    return undefined; // it has just ended
  }
}

function kibibytesIn(status: string, name: string): number | undefined {
  const text = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'mu').exec(status)?.[1];
  return text === undefined ? undefined : Number(text);
}
