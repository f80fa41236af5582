import {setTimeout as sleep} from 'node:timers/promises';
import {askStream, tryStream} from './ask-stream.ts';
import type {Target, Wish} from './ask-stream.ts';
import {processorMs, residentKib} from './process-use.ts';
import {median, quantile} from './quantile.ts';
import {scriptedModels} from './start-ways.ts';

/** p50 and p99 in ms. */
export interface Spread {
  readonly p50: number;
  readonly p99: number;
}

/** Single requests, in turns: time to the first byte. */
export async function firstBytes(targets: readonly Target[], model: string, rounds: number): Promise<Spread[]> {
  const times = targets.map((): number[] => []);
  for (const one of targets) for (let warm = 0; warm < 50; warm += 1) await askStream(one, {model, tokens: 1});
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, one] of targets.entries()) times[index]?.push(await askStream(one, {model, tokens: 1}));
  }
  return times.map(spreadOf);
}

/** 64 streams of 50 tokens a second: from the engine's write to the client's read. Medians of the runs. */
export async function tokenDelays(targets: readonly Target[], runs: number): Promise<(Spread & Rate)[]> {
  const [streams, tokens] = [64, 150];
  const spreads = targets.map((): (Spread & Rate)[] => []);
  for (let run = 0; run < runs; run += 1) {
    for (const [index, one] of targets.entries()) {
      const delays: number[] = [];
      let seen = 0;
      const onToken = (delayMs: number): void => {
        seen += 1;
        if (seen > streams * 25) delays.push(delayMs); // the first half second is the rush of all starting at once
      };
      const wish: Wish = {model: 'stamps-1', tokens, paceMs: 20, onToken};
      const ask = async (each: number): Promise<void> => sleep((each % 20) + 1).then(() => tryStream(one, wish));
      const rate = await rateOf(one, streams * tokens, () =>
        Promise.all(Array.from({length: streams}, (_, each) => ask(each))),
      );
      spreads[index]?.push({...spreadOf(delays), ...rate});
    }
  }
  return spreads.map(each => ({
    ...middle(each),
    p50: median(each.map(({p50}) => p50)),
    p99: median(each.map(({p99}) => p99)),
  }));
}

/** How many a second, and what each cost all nodes on the way in processor time. */
export interface Rate {
  readonly perSecond: number;
  readonly processorMicros: number | undefined;
}

/** Short requests from sixteen clients that each ask again and again. Median of the runs. */
export async function requestRates(targets: readonly Target[], runs: number): Promise<Rate[]> {
  const requests = 1600;
  return inTurns(targets, runs, one =>
    rateOf(one, requests, () => {
      let left = requests;
      const client = async (): Promise<void> => {
        while (left-- > 0) await tryStream(one, {model: 'stamps-1', tokens: 1});
      };
      return Promise.all(Array.from({length: 16}, client));
    }),
  );
}

/** Tokens over some streams at once that are written as fast as they are taken. Median of the runs. */
export async function tokenRates(
  targets: readonly Target[],
  runs: number,
  wish: Wish,
  streams: number,
): Promise<Rate[]> {
  return inTurns(targets, runs, one =>
    rateOf(one, streams * wish.tokens, () => Promise.all(Array.from({length: streams}, () => tryStream(one, wish)))),
  );
}

export interface Crowd {
  readonly streams: number;
  readonly errors: readonly string[];
  /** Memory for each stream in KiB while all run, by process. */
  readonly kibPerStream: Readonly<Record<string, number>>;
}

/** So many streams at once, of one token a second each. */
export async function crowd(one: Target, streams: number): Promise<Crowd> {
  const before = residentKib(one);
  let begun = 0;
  const errors: string[] = [];
  const all = Array.from({length: streams}, async (_, index) => {
    const model = scriptedModels[index % scriptedModels.length] ?? scriptedModels[0];
    try {
      await sleep(index * 4); // five hundred connections in one instant would test the listen queue of the kernel
      await askStream(one, {model, tokens: 12, paceMs: 1000, onFirst: () => (begun += 1)});
    } catch (error) {
      errors.push(error instanceof Error ? error.message : String(error));
    }
  });
  const endMs = performance.now() + 20_000;
  while (begun + errors.length < streams && performance.now() < endMs) await sleep(50);
  await sleep(1500);
  const during = residentKib(one);
  await Promise.all(all);
  const kib = Object.entries(during).map(([name, value]) => [name, (value - (before[name] ?? 0)) / streams]);
  return {streams, errors, kibPerStream: Object.fromEntries(kib)};
}

async function inTurns(
  targets: readonly Target[],
  runs: number,
  measure: (one: Target) => Promise<Rate>,
): Promise<Rate[]> {
  const results = targets.map((): Rate[] => []);
  for (let run = 0; run < runs; run += 1) {
    for (const [index, one] of targets.entries()) results[index]?.push(await measure(one));
  }
  return results.map(middle);
}

async function rateOf(one: Target, count: number, run: () => Promise<unknown>): Promise<Rate> {
  const startMs = performance.now();
  const before = processorMs(one);
  await run();
  const perSecond = (1000 * count) / (performance.now() - startMs);
  const usedMs = sum(processorMs(one)) - sum(before);
  return {perSecond, processorMicros: Object.keys(one.pids).length === 0 ? undefined : (1000 * usedMs) / count};
}

function middle(rates: readonly Rate[]): Rate {
  const used = rates.flatMap(({processorMicros}) => processorMicros ?? []);
  return {
    perSecond: median(rates.map(({perSecond}) => perSecond)),
    processorMicros: used.length === 0 ? undefined : median(used),
  };
}

function sum(values: Readonly<Record<string, number>>): number {
  return Object.values(values).reduce((total, value) => total + value, 0);
}

function spreadOf(values: readonly number[]): Spread {
  return {p50: quantile(values, 0.5), p99: quantile(values, 0.99)};
}
