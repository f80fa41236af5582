import {spawn} from 'node:child_process';
import {asFault, Fault, hasCode, type Clock} from '@hearsay/core';

/** Output kept per stream; the end of it is what explains a failure. */
const outputCharsMax = 64 * 1024;

/** How much of a failed command's output goes into the message. */
const reasonCharsMax = 1500;

/**
 * A program that has just been put there cannot be started while anybody has it open for writing: a process that was
 * forked meanwhile has, until it becomes another program.
 */
const [writtenTriesMax, writtenRetryMs] = [40, 50];

export interface CommandOptions {
  readonly cwd?: string;
  readonly timeLimitMs: number;
}

export interface CommandOutput {
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program without a shell until it ends. Anything but exit code 0 is a fault that carries the end of its output;
 * a missing program is a fault with `details.missing`. When the signal aborts or time is up, the program and what it
 * started are killed.
 */
export async function runCommand(
  command: string,
  commandArguments: readonly string[],
  options: CommandOptions,
  deps: {readonly clock: Clock},
  signal?: AbortSignal,
): Promise<CommandOutput> {
  signal?.throwIfAborted();
  const ended = Promise.withResolvers<string | undefined>();
  const start = () =>
    spawn(command, commandArguments, {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: process.platform !== 'win32', // its own group, so that compilers started by a compiler die with it
      ...(options.cwd === undefined ? {} : {cwd: options.cwd}),
    });
  let child: ReturnType<typeof start> | undefined;
  for (let tries = 1; child === undefined; tries += 1) {
    try {
      child = start();
    } catch (error) {
      if (!hasCode(error, 'ETXTBSY') || tries === writtenTriesMax) throw error;
      await deps.clock.sleep(writtenRetryMs, signal);
    }
  }
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout = (stdout + text).slice(-outputCharsMax)));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-outputCharsMax)));
  child.on('error', ended.reject);
  child.on('close', (code, killedBy) => ended.resolve(code === 0 ? undefined : (killedBy ?? `exit code ${code}`)));

  let isLate = false;
  const kill = (): void => killGroup(child.pid);
  using _ = deps.clock.after(options.timeLimitMs, () => {
    isLate = true;
    kill();
  });
  signal?.addEventListener('abort', kill, {once: true});
  try {
    const failure = await ended.promise;
    signal?.throwIfAborted();
    if (isLate) throw new Fault('TIMED_OUT', `${command} did not end within ${options.timeLimitMs / 1000} s`);
    if (failure === undefined) return {stdout, stderr};
    const reason = (stderr.trim() || stdout.trim()).slice(-reasonCharsMax);
    throw new Fault('INSTALL_FAILED', `${command} failed (${failure}): ${reason}`, {details: {command, failure}});
  } catch (error) {
    signal?.throwIfAborted(); // with the signal's own reason
    if (!hasCode(error, 'ENOENT')) throw asFault(error, 'INSTALL_FAILED');
    throw new Fault('INSTALL_FAILED', `${command} was not found`, {cause: error, details: {missing: command}});
  } finally {
    signal?.removeEventListener('abort', kill);
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // It has just ended by itself, which is what was wanted.
  }
}
