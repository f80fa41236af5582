import {readFileSync} from 'node:fs';
import {CommanderError} from 'commander';
import {describeError, Fault} from '@hearsay/core';
import {z} from 'zod';
import {exitCodeOf, exitCodes} from './exit-codes.ts';
import {makeProgram} from './program.ts';
import {systemClock, systemVariables} from './system.ts';
import {processTerminal} from './terminal.ts';

/** The command line: runs what the arguments say and ends the process with the exit code of `exit-codes.ts`. */

const packageFile = new URL('../package.json', import.meta.url);
const {version} = z.object({version: z.string()}).parse(JSON.parse(readFileSync(packageFile, 'utf8')));

/** Any other call to a file is over much sooner. */
const fileCallsMsMax = 1000;

const terminal = processTerminal();

// Whoever reads our output may stop (`hearsay ps | head -1`), or the terminal may be closed: no reason to crash.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

let exitCode: number = exitCodes.ok;
try {
  const exitWith = (code: number): void => void (exitCode = code);
  await makeProgram({version, variables: systemVariables(), terminal, exitWith}).parseAsync();
} catch (error) {
  exitCode = explain(error);
}
await endFileCalls();
process.exit(exitCode);

/** A call to a drive that is away never returns, and Node would wait for it at its end: only a kill gets past that. */
async function endFileCalls(): Promise<void> {
  const endMs = systemClock.monotonicMs() + fileCallsMsMax;
  while (process.getActiveResourcesInfo().includes('FSReqPromise')) {
    if (systemClock.monotonicMs() > endMs) process.kill(process.pid, 'SIGKILL');
    await systemClock.sleep(20);
  }
}

function explain(error: unknown): number {
  // Commander has said it already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  if (error instanceof Fault) {
    terminal.error(`hearsay: ${error.message}\n`);
    return exitCodeOf(error.code);
  }
  if (error instanceof DOMException && error.name === 'AbortError') return exitCodes.interrupted;
  terminal.error(`hearsay: ${error instanceof Error ? (error.stack ?? error.message) : describeError(error)}\n`);
  return exitCodes.failure;
}
