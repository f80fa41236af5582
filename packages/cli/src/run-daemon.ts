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
 * Runs a node as this process until a signal asks it to end, and resolves with the exit code. SIGTERM lets running
 * requests go on for a while; any other signal, or a second one, ends them with an error, and one more ends everything
 * at once.
 */
export async function runDaemon(options: ServeOptions, log: Log, terminal: Terminal): Promise<number> {
  const retire = new AbortController();
  const stop = new AbortController();
  let exitCode: number = exitCodes.ok;
  let askedAtMs: number | undefined;

  function drain(why: string): void {
    const {drainMsMax} = options.config;
    askedAtMs = systemClock.monotonicMs();
    log('info', `ending: ${why}; what runs may go on for ${drainMsMax / 1000} s, unless there is a second signal`);
    retire.abort(new Fault('CANCELLED', why));
    systemClock.after(drainMsMax, () => end('the time for what runs is over'));
  }
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
    if (askedAtMs === undefined) {
      if (name === 'SIGTERM') drain(name);
      else end(name);
    } else if (systemClock.monotonicMs() - askedAtMs > sameSignalMs) {
      if (!stop.signal.aborted) end(name);
      else process.exit(exitCodes.interrupted);
    }
  }
  function onCrash(error: unknown): void {
    log('error', 'a bug in hearsay ends this node', {error});
    exitCode = exitCodes.failure;
    if (!stop.signal.aborted) end('after a crash');
    else process.exit(exitCode);
  }

  for (const name of endingSignals()) process.on(name, onSignal);
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
  try {
    const begun = (): void => {
      if (!stop.signal.aborted) end('nothing runs any more');
    };
    const ends = {retire: retire.signal, now: stop.signal, begun};
    await serve(options, {clock: systemClock, random: systemRandom, log, terminal}, ends);
  } catch (error) {
    // Asked to end while it was still starting: whatever broke off then is no failure.
    if (askedAtMs === undefined) throw error;
    if (error !== stop.signal.reason && error !== retire.signal.reason) log('warn', 'the end was not clean', {error});
  }
  return exitCode;
}

/** Without a terminal nobody hangs up, and `nohup` wants SIGHUP to do nothing. */
function endingSignals(): readonly NodeJS.Signals[] {
  return process.stdin.isTTY ? ['SIGINT', 'SIGTERM', 'SIGHUP'] : ['SIGINT', 'SIGTERM'];
}
