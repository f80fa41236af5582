import {readFileSync} from 'node:fs';
import {constants} from 'node:os';

const {SIGINT, SIGTERM} = constants.signals;

/**
 * Whether the main thread of a process works on a SIGTERM or SIGINT at this moment, which the system keeps from it
 * meanwhile. False where the system does not tell, and when the process is gone.
 */
export function isAskedToEnd(pid: number | undefined): boolean {
  if (process.platform !== 'linux' || pid === undefined) return false;
  try {
    const mask = /^SigBlk:\s+(?<mask>[0-9a-f]+)$/mu.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.groups?.['mask'];
    const blocked = BigInt(`0x${mask ?? '0'}`);
    return [SIGINT, SIGTERM].some(signal => ((blocked >> BigInt(signal - 1)) & 1n) === 1n);
  } catch {
    return false; // it has just ended
  }
}
