import {hasCode} from '@hearsay/core';
/**
 * Signals a child's whole process group: `llama serve` and wrapper scripts have children of their own. Quiet when it
 * is gone.
 */
export function signalGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal);
  } catch (error) {
    // macOS answers EPERM for a group of which only a zombie is left.
    if (!hasCode(error, 'ESRCH', 'EPERM')) throw error;
  }
}
