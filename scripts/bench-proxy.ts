import {parseArgs} from 'node:util';
import type {Target} from './bench/ask-stream.ts';
import {crowd, firstBytes, requestRates, tokenDelays, tokenRates} from './bench/measure.ts';
import type {Crowd, Rate, Spread} from './bench/measure.ts';
import {residentKib} from './bench/process-use.ts';
import {realModel, startWays} from './bench/start-ways.ts';
import {table} from './bench/table.ts';
import type {Row} from './bench/table.ts';
import {prepareTests} from './prepare-tests.ts';

/**
 * `npm run bench:proxy`: what the way through hearsay costs. The same requests go, in turns within one run, straight to
 * an engine, through the gateway of the node that has the engine (local), and through one that must cross the mesh
 * (remote). The engine is a real llama-server, and where that would be the bottleneck a scripted one whose tokens carry
 * the time. What the plainest proxy of node:http adds to the same is the yardstick for this machine. Compare columns,
 * not runs: the machine is shared. The goals in ms and requests/s are of the machine on which they were set; where the
 * straight way is slower than there, the same goals as multiples of the straight way tell more.
 *
 * `--against FOLDER` measures the daemons of another checkout beside those of this one · `--only first,delay,requests,
 * tokens,crowd,real` · `--runs N` · `--rounds N` for single requests · `--streams 64,256` · `--profile FOLDER` leaves
 * CPU profiles of the daemons · `--ways local` for one of them alone.
 */
const {values: options} = parseArgs({
  options: {
    against: {type: 'string'},
    only: {type: 'string', default: 'first,delay,requests,tokens,crowd,real'},
    runs: {type: 'string', default: '3'},
    rounds: {type: 'string', default: '300'},
    streams: {type: 'string', default: '64,256,512'},
    profile: {type: 'string'},
    ways: {type: 'string', default: 'direct,local,remote,plain proxy'},
  },
});
/** The straight way on the machine on which the goals were set: first byte in ms, and 16 clients at once. */
const reference = {p50: 0.09, p99: 1.3, requestsPerSecond: 15_500};

const parts = options.only.split(',');
const runs = Number(options.runs);
const rounds = Number(options.rounds);

await using cleanup = new AsyncDisposableStack();
Object.assign(process.env, await prepareTests());
const ways = await startWays(cleanup, {against: options.against, profiles: options.profile});
const isWanted = ({name}: Target): boolean => options.ways.split(',').includes(name.replace(' (against)', ''));
const [real, scripted] = [ways.real.filter(isWanted), ways.scripted.filter(isWanted)];
const names = scripted.map(({name}) => name);
const rows: Row[] = [];
const idle = scripted.map(one => residentKib(one));

if (parts.includes('first')) {
  const spreads = await firstBytes(scripted, 'stamps-1', rounds);
  rows.push(...firstByteRows(spreads, ''));
  rows.push(timesRow('p50', spreads, {must: [0.4, 2], stretch: [0.2, 0.7]}));
  rows.push(timesRow('p99', spreads, {must: [4, 8], stretch: [2, 5]}));
}
if (parts.includes('delay')) rows.push(...delayRows(await tokenDelays(scripted, runs)));
if (parts.includes('requests')) rows.push(...requestRows(await requestRates(scripted, runs)));
if (parts.includes('tokens')) {
  const rates = await tokenRates(scripted, runs, {model: 'stamps-1', tokens: 10_000}, 8);
  rows.push(...tokenRows(rates, '8 streams'));
}
if (parts.includes('real')) {
  rows.push(...firstByteRows(await firstBytes(real, realModel, rounds), 'llama-server: '));
  rows.push(...tokenRows(await tokenRates(real, runs, {model: realModel, tokens: 400}, 4), 'llama-server, 4 streams'));
}
console.log(`${rounds} single requests each, ${runs} runs, in turns; 64 streams of 50 tokens/s for the delay\n`);
console.log(table(names, rows));
for (const {name, failures} of scripted) {
  if (failures.length > 0) console.log(`${name}: ${failures.length} requests failed, the first: ${failures[0]}`);
}
console.log('\n++ stretch goal reached, + must reached, - missed; goals are local / remote\n');
if (parts.includes('crowd')) await crowds(scripted.filter(({pids}) => Object.keys(pids).length > 0));
for (const {agent} of scripted) agent.destroy();

function firstByteRows(spreads: readonly Spread[], of: string): Row[] {
  const [base = {p50: 0, p99: 0}] = spreads;
  const added = (share: keyof Spread): (number | undefined)[] =>
    spreads.map((each, way) => (way === 0 ? undefined : each[share] - base[share]));
  return [
    {figure: `${of}first byte, p50 ms`, values: spreads.map(({p50}) => p50), digits: 2},
    {figure: `${of}first byte, p99 ms`, values: spreads.map(({p99}) => p99), digits: 2},
    {
      figure: `${of}added to the first byte, p50 ms`,
      values: added('p50'),
      digits: 2,
      goal: {must: [0.4, 2], stretch: [0.2, 0.7], better: 'less'},
    },
    {
      figure: `${of}added to the first byte, p99 ms`,
      values: added('p99'),
      digits: 2,
      goal: {must: [4, 8], stretch: [2, 5], better: 'less'},
    },
  ];
}

/** With the goals in ms as multiples of what the straight way to the scripted engine took where they were set. */
function timesRow(share: keyof Spread, spreads: readonly Spread[], goals: Record<Grade, Pair>): Row {
  const [base = {p50: 0, p99: 0}] = spreads;
  const times = ([local, remote]: Pair): Pair => [round(local / reference[share]), round(remote / reference[share])];
  return {
    figure: `added to the first byte, ${share}, times the straight way`,
    values: spreads.map((each, way) => (way === 0 ? undefined : (each[share] - base[share]) / base[share])),
    digits: 1,
    goal: {must: times(goals.must), stretch: times(goals.stretch), better: 'less'},
  };
}

type Pair = readonly [local: number, remote: number];
type Grade = 'must' | 'stretch';

/** To two digits that count. */
function round(value: number): number {
  return Number(value.toPrecision(2));
}

function delayRows(spreads: readonly (Spread & Rate)[]): Row[] {
  const [base = {p50: 0, p99: 0}] = spreads;
  const row = (share: keyof Spread, must: number, stretch: number): Row => ({
    figure: `added to each token, 64 streams, ${share} ms`,
    values: spreads.map((each, way) => (way === 0 ? undefined : each[share] - base[share])),
    digits: 2,
    goal: {must: [must, must], stretch: [stretch, stretch], better: 'less'},
  });
  return [
    {figure: 'token from engine to client, 64 streams, p50 ms', values: spreads.map(({p50}) => p50), digits: 2},
    {figure: 'token from engine to client, 64 streams, p99 ms', values: spreads.map(({p99}) => p99), digits: 2},
    row('p50', 0.7, 0.4),
    row('p99', 6, 3),
    processorRow(spreads, 'token, 64 streams'),
  ];
}

function requestRows(rates: readonly Rate[]): Row[] {
  const goal = {must: [4000, 1200], stretch: [8000, 2500], better: 'more'} as const;
  const [base = {perSecond: 0}] = rates;
  const shares = ([local, remote]: Pair): Pair => [
    round(local / reference.requestsPerSecond),
    round(remote / reference.requestsPerSecond),
  ];
  return [
    {figure: 'requests/s, 16 clients', values: rates.map(({perSecond}) => perSecond), digits: 0, goal},
    {
      figure: 'requests/s, 16 clients, of the straight way',
      values: rates.map(({perSecond}, way) => (way === 0 ? undefined : perSecond / base.perSecond)),
      digits: 3,
      goal: {must: shares(goal.must), stretch: shares(goal.stretch), better: 'more'},
    },
    processorRow(rates, 'request'),
  ];
}

function tokenRows(rates: readonly Rate[], how: string): Row[] {
  const values = rates.map(({perSecond}) => perSecond);
  const share = values.map((rate, way) =>
    names[way]?.startsWith('remote') ? rate / (values[way - 1] ?? rate) : undefined,
  );
  return [
    {figure: `tokens/s, ${how}`, values, digits: 0},
    {
      figure: `tokens/s, ${how}, remote of local`,
      values: share,
      digits: 2,
      goal: {must: [0, 0.7], stretch: [0, 0.95], better: 'more'},
    },
    processorRow(rates, `token, ${how}`),
  ];
}

/** Says the same on a busy machine as on a quiet one. */
function processorRow(rates: readonly Rate[], what: string): Row {
  const values = rates.map(({processorMicros}) => processorMicros);
  return {figure: `processor time for each ${what}, µs`, values, digits: 1};
}

async function crowds(targets: readonly Target[]): Promise<void> {
  console.log('streams at once   errors   memory for each stream (must 64 KiB, stretch 24)');
  for (const one of targets) {
    for (const streams of options.streams.split(',').map(Number))
      console.log(crowdLine(one, await crowd(one, streams)));
  }
  const memory = idle.flatMap((each, way) =>
    Object.entries(each).map(([name, kib]) => `${names[way]} ${name} ${(kib / 1024).toFixed(0)}`),
  );
  console.log(`\nresident at rest, MiB (must 180, stretch 130): ${memory.join(', ')}`);
}

function crowdLine(one: Target, {streams, errors, kibPerStream}: Crowd): string {
  const memory = Object.entries(kibPerStream).map(([name, kib]) => `${name} ${kib.toFixed(0)} KiB`);
  const first = errors[0] === undefined ? '' : `   first error: ${errors[0]}`;
  return `${one.name.padEnd(18)}${String(streams).padStart(5)}${String(errors.length).padStart(9)}   ${memory.join(', ')}${first}`;
}
