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
 * `npm run fifty`: fifty daemons on this machine find each other by LAN discovery, form one mesh, and each answers a
 * request although one of them only has the model. Prints how long a daemon takes to be ready and to meet its first
 * peer, and what it costs at rest. `--nodes N` for another number.
 */
const {values: options} = parseArgs({options: {nodes: {type: 'string', default: '50'}}});
const count = Number(options.nodes);
const model = 'tiny-count-F16';

await using cleanup = new AsyncDisposableStack();
const daemons: Daemon[] = [];
const closing: (() => unknown)[] = [];
const t = {teardown: (run: () => unknown): void => void closing.push(run)};
cleanup.defer(async () => void (await Promise.all(closing.toReversed().map(async run => run()))));
Object.assign(process.env, await prepareTests());
const mesh = `fifty-${process.pid}`;

const holder = await start('holder', [await modelFolder(t, `${model}.gguf`)]);
await sleep(5000);
console.log(`alone at rest: ${mebibytes(holder.daemon).toFixed(0)} MiB (must 180, stretch 130)`);
const readyMs = [holder.readyMs];
const firstPeerMs: number[] = [];
for (let index = 1; index < count; index += 1) {
  const {daemon, readyMs: ms, startedMs} = await start(`node-${index}`);
  readyMs.push(ms);
  await until('it meets a peer', async () => (await aliveNames(daemon.url)).length > 1, 60_000);
  firstPeerMs.push(performance.now() - startedMs);
}
console.log(`from the start of the process to ready: ${spread(readyMs)} ms (must 1000, stretch 500)`);
console.log(`from the start of the process to the first peer: ${spread(firstPeerMs)} ms (must 5000, stretch 2000)`);

const whole = await timed(async () =>
  Promise.all(
    daemons.map(async ({url, name}) =>
      until(`${name} sees all`, async () => (await aliveNames(url)).length === count, 120_000),
    ),
  ),
);
console.log(`all ${count} saw all ${count} ${whole.ms.toFixed(0)} ms after the last was there`);

let answered = 0;
for (const {url, name} of daemons) {
  await until(`${name} knows the model`, async () => (await models(url)).length > 0, 60_000);
  const answer = await chatText(url, {model, max_tokens: 3});
  if (answer.status === 200 && answer.done && answer.text === ' 1 2 3') answered += 1;
  else console.log(`${name}: ${answer.status} ${answer.text}`);
}
console.log(`${answered} of ${count} answered a request`);

const before = daemons.map(each => processorMs({pids: {daemon: each.pid}})['daemon'] ?? 0);
const restMs = 20_000;
await sleep(restMs);
const shares = daemons.map((each, index) => {
  const usedMs = (processorMs({pids: {daemon: each.pid}})['daemon'] ?? 0) - (before[index] ?? 0);
  return (100 * usedMs) / restMs;
});
const memory = daemons.map(mebibytes);
console.log(`at rest in a mesh of ${count}: ${spread(memory)} MiB, ${spread(shares, 2)} % of a core for each daemon`);
process.exitCode = answered === count ? 0 : 1;

interface Started {
  readonly daemon: Daemon;
  readonly startedMs: number;
  readonly readyMs: number;
}

async function start(name: string, folders: readonly string[] = []): Promise<Started> {
  const startedMs = performance.now();
  const variables = {HEARSAY_THREADS: '1', HEARSAY_CONTEXT: '2048'};
  const daemon = await startDaemon(t, {name, mesh, models: folders, variables});
  daemons.push(daemon);
  return {daemon, startedMs, readyMs: performance.now() - startedMs};
}

function mebibytes({pid}: Daemon): number {
  return (residentKib({pids: {daemon: pid}})['daemon'] ?? Number.NaN) / 1024;
}

function spread(values: readonly number[], digits: number = 0): string {
  const largest = Math.max(...values).toFixed(digits);
  return `median ${median(values).toFixed(digits)}, p90 ${quantile(values, 0.9).toFixed(digits)}, largest ${largest}`;
}
