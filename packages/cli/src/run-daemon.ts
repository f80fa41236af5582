import {Fault} from '@hearsay/core';
import type {Log} from '@hearsay/core';
import {exitCodes} from './exit-codes.ts';
import {serve} from './serve.ts';
import type {ServeOptions} from './serve.ts';
import {systemClock, systemRandom} from './system.ts';
import type {Terminal} from './terminal.ts';

/** Longest clean end: children get SIGTERM and have seconds to go; whoever waits for us gives up after about ten. */
const endMsMax = 5000;

/** Launchers pass on a Ctrl-C that the terminal has already given to every process: this soon it is the same one. */
const sameSignalMs = 500;

/**
 * Runs a node as this process until a signal asks it to end, and resolves with the exit code. A second signal ends it
 * at once.
 */
export async function runDaemon(options: ServeOptions, log: Log, terminal: Terminal): Promise<number> {
  const stop = new AbortController();
  let exitCode: number = exitCodes.ok;
  let askedAtMs: number | undefined;

  function end(why: string): void {
    askedAtMs = systemClock.monotonicMs();
    log('info', `ending: ${why}`);
    systemClock.after(endMsMax, () => {
      log('error', `did not end cleanly within ${endMsMax / 1000} s`);
      process.exit(exitCodes.failure);
    });
    stop.abort(new Fault('CANCELLED', why));
  }
  function onSignal(name: NodeJS.Signals): void {
    if (askedAtMs === undefined) end(name);
    else if (systemClock.monotonicMs() - askedAtMs > sameSignalMs) process.exit(exitCodes.interrupted);
  }
  function onCrash(error: unknown): void {
    log('error', 'a bug in hearsay ends this node', {error});
    exitCode = exitCodes.failure;
    if (askedAtMs === undefined) end('after a crash');
    else process.exit(exitCode);
  }

  for (const name of endingSignals()) process.on(name, onSignal);
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
  try {
    await serve(options, {clock: systemClock, random: systemRandom, log, terminal}, stop.signal);
  } catch (error) {
    // Asked to end while it was still starting: whatever broke off then is no failure.
    if (askedAtMs === undefined) throw error;
    if (error !== stop.signal.reason) log('warn', 'the end was not clean', {error});
  }
  return exitCode;
}

/** Without a terminal nobody hangs up, and `nohup` wants SIGHUP to do nothing. */
function endingSignals(): readonly NodeJS.Signals[] {
  return process.stdin.isTTY ? ['SIGINT', 'SIGTERM', 'SIGHUP'] : ['SIGINT', 'SIGTERM'];
}
