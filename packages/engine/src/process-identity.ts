import {execFile} from 'node:child_process';
import {readFile} from 'node:fs/promises';
import {promisify} from 'node:util';

/**
 * When a process started and its command line, as one text: two processes that use the same id one after the other
 * differ in it. Undefined when no such process runs (a zombie runs no more) or this system cannot tell.
 */
export async function processIdentity(pid: number): Promise<string | undefined> {
  try {
    if (process.platform === 'linux') return await linuxIdentity(pid);
    if (process.platform === 'win32') return undefined;
    const {stdout} = await promisify(execFile)('ps', ['-ww', '-o', 'lstart=,command=', '-p', String(pid)]);
    return stdout.trim() || undefined;
  } catch {
    return undefined; // gone, or not ours to look at: in both cases not to be touched
  }
}

async function linuxIdentity(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The second field is the program's name in parentheses and may itself contain blanks and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const startTicks = fields[19];
  if (state === 'Z' || state === 'X' || startTicks === undefined) return undefined;
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8');
  // A process on its way out has given its memory back already, and its command line with it.
  return command === '' ? undefined : `${startTicks} ${command.replaceAll('\0', ' ').trim()}`;
}
