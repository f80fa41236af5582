import {popularity} from './hardware.ts';
import type {SimRequest} from './sim-request.ts';
import {chance, exponential, logNormal} from './timeline.ts';
import type {Timeline} from './timeline.ts';

export interface Workload {
  readonly rate: number;
  readonly seed: number;
  readonly nodes: number;
  readonly loyalty?: number;
  readonly only?: number;
}

const turnsMean = 4;
const thinkSeconds = 15;
/** System prompts of six applications, in tokens. */
const systems = [100, 400, 900, 1500, 2500, 4000] as const;
/** Conversations end before their context is full. */
const historyMax = 24_000;

/**
 * People who come by chance, ask a few times with pauses, and sometimes paste a document. What they do does not depend
 * on how they are served, except that nobody asks before the answer has come.
 */
export function startSessions(workload: Workload, timeline: Timeline, arrive: (request: SimRequest) => void): void {
  const {rate, seed, nodes, loyalty = 0.9, only} = workload;
  const arrivals = chance(seed * 7919 + 13);
  let sessions = 0;
  let requests = 0;

  function session(): void {
    sessions += 1;
    const id = sessions;
    const next = chance(seed * 1_000_003 + id * 31 + 5);
    next();
    const model = only ?? pick(next());
    const app = Math.floor(next() * systems.length);
    const system = systems[app] ?? 0;
    const home = Math.floor(next() * nodes);

    function turn(history: number): void {
      const isHeavy = next() < 0.12;
      const added = Math.round(clamp(isHeavy ? logNormal(next, 3000, 0.6) : logNormal(next, 120, 0.9), 5, 12_000));
      const output = Math.round(clamp(logNormal(next, 180, 0.8), 5, 1500));
      const entry = next() < loyalty ? home : Math.floor(next() * nodes);
      const goesOn = next() < 1 - 1 / turnsMean;
      const pause = exponential(next, thinkSeconds);
      const prompt = history + added;
      requests += 1;
      arrive({
        id: requests,
        session: id,
        app,
        model,
        prompt,
        history,
        system,
        output,
        entry,
        arrivedAt: timeline.now,
        startedAt: 0,
        firstAt: undefined,
        hit: 0,
        onEnd() {
          if (goesOn && prompt + output < historyMax) timeline.in(pause, () => turn(prompt + output));
        },
      });
    }
    turn(system);
  }

  function wait(): void {
    timeline.in(exponential(arrivals, turnsMean / rate), () => {
      session();
      wait();
    });
  }
  wait();
}

function pick(lot: number): number {
  let left = lot;
  for (const [index, share] of popularity.entries()) {
    if (left <= share) return index;
    left -= share;
  }
  return popularity.length - 1;
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
