import {parseArgs} from 'node:util';
import {setTimeout as sleep} from 'node:timers/promises';
import {chatText} from '../test/support/chat.ts';
import {startDaemon} from '../test/support/daemon.ts';
import type {Daemon} from '../test/support/daemon.ts';
import {modelFolder} from '../test/support/models.ts';
import {aliveNames, models} from '../test/support/reports.ts';
import {timed, until} from '../test/support/until.ts';
import {processorMs, residentKib} from './bench/process-use.ts';
import {median, quantile} from './bench/quantile.ts';
import {prepareTests} from './prepare-tests.ts';

/**
 * `npm run fifty`: fifty daemons on this machine find each other by LAN discovery and form one mesh, and each answers a
 * request for a model that only another one has. Prints how long a daemon takes to be ready and to meet its first peer,
 * and what it costs then and at rest. Ends with 0 only if all of them know all, answer, and keep within the memory that
 * is a promise; times depend on what else the machine does, so they are only marked (++ wish, + promise, - neither).
 * `--nodes N` for another number.
 */
const {values: options} = parseArgs({options: {nodes: {type: 'string', default: '50'}}});
const count = Number(options.nodes);

/** Two nodes have one model each, so that both of them too have to ask another. */
const holdings = [
  {node: 0, model: 'tiny-count-F16', answer: ' 1 2 3'},
  {node: count - 1, model: 'tiny-deep-F16', answer: undefined},
] as const;

/** What one daemon may take, in MB. */
const promisedMb = 180;

/** How long is looked at what a mesh costs at rest, and how long it may settle before. */
const restMs = 60_000;
const settleMs = 30_000;

await using cleanup = new AsyncDisposableStack();
const daemons: Daemon[] = [];
const closing: (() => unknown)[] = [];
const t = {teardown: (run: () => unknown): void => void closing.push(run)};
cleanup.defer(async () => void (await Promise.all(closing.toReversed().map(async run => run()))));
Object.assign(process.env, await prepareTests());
const mesh = `fifty-${process.pid}`;
const broken: string[] = [];

const readyMs: number[] = [];
const firstPeerMs: number[] = [];
const readyProcessorMs: number[] = [];
const allPeersMs: number[] = [];
const beganMs = performance.now();
for (let index = 0; index < count; index += 1) {
  const startedMs = performance.now();
  const daemon = await start(index);
  readyMs.push(performance.now() - startedMs);
  readyProcessorMs.push(usedMs(daemon));
  if (index === 0) continue;
  await until('it meets a peer', async () => (await aliveNames(daemon.url)).length > 1, 60_000);
  firstPeerMs.push(performance.now() - startedMs);
  await until('it knows all', async () => knowsAll(daemon), 60_000);
  allPeersMs.push(performance.now() - startedMs);
  if (index % 10 === 9)
    console.log(`${index + 1} are there after ${((performance.now() - beganMs) / 1000).toFixed(0)} s`);
}
console.log(`${count} daemons, each started when the one before knew all others: two cores cannot do more at a time`);
console.log(`from the start of the process to ready: ${spread(readyMs)} ms ${mark(median(readyMs), 500, 1000)}`);
console.log(`  of these, ${spread(readyProcessorMs)} ms of processor time`);
console.log(`from the start to the first peer: ${spread(firstPeerMs)} ms ${mark(median(firstPeerMs), 2000, 5000)}`);

console.log(`from the start until it knows all that are there: ${spread(allPeersMs)} ms`);

const whole = await timed(async () => {
  for (const daemon of daemons) await until(`${daemon.name} knows all`, async () => knowsAll(daemon), 60_000);
});
console.log(`all ${count} knew all ${count} ${whole.ms.toFixed(0)} ms after the last did`);
console.log(`processor time of each daemon so far: ${spread(daemons.map(usedMs))} ms`);

let answered = 0;
const asking = await timed(async () => {
  for (const [index, daemon] of daemons.entries()) if (await answers(index, daemon)) answered += 1;
});
console.log(
  `${answered} of ${count} answered a request for a model of another, ${count} in ${asking.ms.toFixed(0)} ms`,
);
if (answered < count) broken.push('not every daemon has answered');

await sleep(settleMs);
const before = daemons.map(usedMs);
await sleep(restMs);
const shares = daemons.map((each, index) => (100 * (usedMs(each) - (before[index] ?? 0))) / restMs);
const memory = daemons.map(megabytes);
console.log(`at rest: ${spread(shares, 2)} % of a core for each daemon, ${sum(shares).toFixed(0)} % for all`);
console.log(`at rest: ${spread(memory)} MB for each daemon ${mark(Math.max(...memory), 130, promisedMb)}`);
if (Math.max(...memory) > promisedMb) broken.push(`a daemon takes more than ${promisedMb} MB`);
for (const daemon of daemons) if (!(await knowsAll(daemon))) broken.push(`${daemon.name} has lost some of the others`);
console.log(broken.length === 0 ? 'all of it holds' : broken.join('\n'));
process.exitCode = broken.length === 0 ? 0 : 1;

async function start(index: number): Promise<Daemon> {
  const held = holdings.filter(({node}) => node === index).map(({model}) => `${model}.gguf`);
  const folders = held.length > 0 ? [await modelFolder(t, ...held)] : [];
  const variables = {HEARSAY_THREADS: '1', HEARSAY_CONTEXT: '2048'};
  const daemon = await startDaemon(t, {name: `node-${index}`, mesh, models: folders, variables});
  daemons.push(daemon);
  return daemon;
}

/** Asking costs the daemon more than all it does at rest, so it is not asked as often as `until` would. */
async function knowsAll({url}: Daemon): Promise<boolean> {
  const {length} = await aliveNames(url);
  if (length < daemons.length) await sleep(200);
  return length === daemons.length;
}

/** Asks it for a model that it does not have itself. */
async function answers(index: number, {url, name}: Daemon): Promise<boolean> {
  const wanted = holdings.find(({node}) => node !== index) ?? holdings[0];
  await until(`${name} knows the models`, async () => (await models(url)).length === holdings.length, 60_000);
  const answer = await chatText(url, {model: wanted.model, max_tokens: 3});
  const isRight = wanted.answer === undefined ? answer.text !== '' : answer.text === wanted.answer;
  if (answer.status === 200 && answer.done && isRight) return true;
  console.log(`${name}: ${answer.status} ${answer.text}`);
  return false;
}

function usedMs({pid}: Daemon): number {
  return processorMs({pids: {daemon: pid}})['daemon'] ?? Number.NaN;
}

function megabytes({pid}: Daemon): number {
  return ((residentKib({pids: {daemon: pid}})['daemon'] ?? Number.NaN) * 1024) / 1e6;
}

function spread(values: readonly number[], digits: number = 0): string {
  const largest = Math.max(...values).toFixed(digits);
  return `median ${median(values).toFixed(digits)}, p90 ${quantile(values, 0.9).toFixed(digits)}, largest ${largest}`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mark(value: number, wish: number, promise: number): string {
  const grade = value <= wish ? '++' : value <= promise ? '+' : '-';
  return `(${grade}; promise ${promise}, wish ${wish})`;
}
