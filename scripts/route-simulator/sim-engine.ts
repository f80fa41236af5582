import type {SimRequest} from './sim-request.ts';

/** One loaded model of a simulated machine. */
export interface Engine {
  readonly model: number;
  isReady: boolean;
  readyAt: number;
  usedAt: number;
  readonly running: Job[];
  readonly queue: SimRequest[];
  /** What it has read: conversations and system prompts, in tokens, the one not used for longest first. */
  readonly cache: Map<string, number>;
}

export interface Job {
  readonly request: SimRequest;
  readonly engine: Engine;
  isReading: boolean;
  left: number;
  rate: number;
}

export function newEngine(model: number, readyAt: number, isReady: boolean): Engine {
  return {model, isReady, readyAt, usedAt: readyAt, running: [], queue: [], cache: new Map()};
}

export function isIdle({isReady, running, queue}: Engine): boolean {
  return isReady && running.length === 0 && queue.length === 0;
}
