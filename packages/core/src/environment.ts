/** Time, chance and facts enter every package through these three ports; the real ones live only in `cli`. */

export interface Clock {
  /** Milliseconds since 1970 on this machine's wall clock: for stamps that people read, never for durations. */
  wallMs(): number;
  /** Milliseconds on a clock that never jumps back: for durations, deadlines and expiry. */
  monotonicMs(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `run` once after `ms` unless the handle is disposed before. The timer does not keep the process alive. */
  after(ms: number, run: () => void): Disposable;
}

export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** Cryptographically strong bytes, for keys and identifiers. */
  bytes(length: number): Uint8Array;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/**
 * `error`: someone must act · `warn`: may become an error · `info`: a person wants to know, rare · `debug`: for
 * developers. Fields are ours, never prompts, keys or bytes from the network.
 */
export type Log = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void;

export interface Environment {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** One text that outlives the process; whoever owns the files gives it. */
export interface TextStore {
  /** Undefined when nothing was ever written. */
  read(): Promise<string | undefined>;
  /** Replaces it; resolves when it is on disk. */
  write(text: string): Promise<void>;
}
