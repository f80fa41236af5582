import {inspect} from 'node:util';
import type {Clock, Log, LogLevel} from '@hearsay/core';
import {describeError, Fault} from '@hearsay/core';
import pino from 'pino';
import {printable} from './tables.ts';

export interface LogTarget {
  readonly level: LogLevel;
  /** One line for people instead of JSON. */
  readonly pretty: boolean;
  readonly write: (line: string) => void;
}

const severity: Readonly<Record<LogLevel, number>> = {debug: 0, info: 1, warn: 2, error: 3};

/** Longest field that is shown to people; JSON has it whole. */
const shownLengthMax = 300;

export function createLog(target: LogTarget, clock: Clock): Log {
  if (target.pretty) return prettyLog(target, clock);
  const logger = pino(
    {
      level: target.level,
      base: null,
      timestamp: () => `,"time":"${new Date(clock.wallMs()).toISOString()}"`,
      formatters: {level: label => ({level: label})},
    },
    {write: target.write},
  );
  return (level, message, fields) => logger[level](withErrors(fields), message);
}

function prettyLog({level: levelMin, write}: LogTarget, clock: Clock): Log {
  return (level, message, fields = {}) => {
    if (severity[level] < severity[levelMin]) return;
    const time = new Date(clock.wallMs()).toTimeString().slice(0, 8);
    const details = Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => ` ${key}=${shown(value)}`);
    // Our own faults explain themselves; the trace is for what nobody foresaw.
    const traces = Object.values(fields).filter(
      value => level === 'error' && value instanceof Error && !(value instanceof Fault),
    );
    const trace = traces.map(error => (error instanceof Error ? `${error.stack ?? ''}\n` : '')).join('');
    write(`${time} ${level.padEnd(5)} ${printable(message)}${details.join('')}\n${trace}`);
  };
}

function shown(value: unknown): string {
  const text =
    typeof value === 'string'
      ? value
      : value instanceof Error
        ? describeError(value)
        : inspect(value, {breakLength: Infinity});
  const short = text.length > shownLengthMax ? `${text.slice(0, shownLengthMax)}…` : text;
  return printable(/[\s"]/u.test(short) ? JSON.stringify(short) : short);
}

/** Errors turn into `{}` in JSON unless somebody spells them out. */
function withErrors(fields: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? spelledOut(value) : value]),
  );
}

function spelledOut(error: Error): Record<string, unknown> {
  const {name, message, stack, cause} = error;
  return {name, message, stack, ...(cause instanceof Error && {cause: spelledOut(cause)})};
}
