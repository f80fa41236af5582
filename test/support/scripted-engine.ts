import {delimiter, dirname, join} from 'node:path';
import type {DaemonOptions} from './daemon.ts';

/** A daemon with these options runs `test/fixtures/scripted-engine.mjs` for a llama-server: prompts are scripts. */
export const scriptedEngine: Required<Pick<DaemonOptions, 'engine' | 'variables'>> = {
  engine: join(import.meta.dirname, '..', 'fixtures', 'scripted-engine.mjs'),
  variables: {PATH: [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter)},
};

/** What the engine does wrong, and when. */
export interface Mishap {
  readonly at: 'before headers' | 'after headers' | 'mid-token' | 'before the end mark' | 'never';
  readonly how: 'dies' | 'stalls' | 'error event' | 'clean end' | 'gzip' | 'stale length' | 'waits';
  /** Of `waits`. */
  readonly ms?: number;
  /** By which the engine counts how often it was asked. */
  readonly id?: string;
}
