import {readdirSync, readFileSync} from 'node:fs';

/** Processes by what they do. */
interface Processes {
  readonly pids: Readonly<Record<string, number>>;
}

/** Resident memory of each. Linux only, as the rest of the benches. */
export function residentKib(processes: Processes): Record<string, number> {
  return forEach(processes, pid => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+)/mu.exec(status)?.[1] ?? Number.NaN);
  });
}

/** Processor time of each since its start, all threads. Unlike time on a clock it says the same on a busy machine. */
export function processorMs(processes: Processes): Record<string, number> {
  return forEach(processes, pid => {
    const threads = readdirSync(`/proc/${pid}/task`);
    const nanoseconds = threads.map(thread => {
      try {
        return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
      } catch {
        return 0; // the thread has ended meanwhile
      }
    });
    return nanoseconds.reduce((total, value) => total + value, 0) / 1e6;
  });
}

function forEach({pids}: Processes, measure: (pid: number) => number): Record<string, number> {
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, measure(pid)]));
}
