import {createLog} from './log.ts';
import {runDaemon} from './run-daemon.ts';
import type {ServeOptions} from './serve.ts';
import {systemClock} from './system.ts';
import type {Terminal} from './terminal.ts';

/** `hearsay serve` with its log on stderr; resolves with the exit code. */
export async function startServing(options: ServeOptions, {terminal}: {readonly terminal: Terminal}): Promise<number> {
  const {logLevel: level} = options.config;
  const log = createLog({level, pretty: terminal.isInteractive, write: terminal.error}, systemClock);
  return runDaemon(options, log, terminal);
}
