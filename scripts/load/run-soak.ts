import {readdirSync, readFileSync} from 'node:fs';
import {copyFile, rm} from 'node:fs/promises';
import {join} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import {startDaemon} from '../../test/support/daemon.ts';
import type {Daemon} from '../../test/support/daemon.ts';
import {modelFolder, tinyModel} from '../../test/support/models.ts';
import {childrenWith} from '../../test/support/processes.ts';
import {engines, models, status} from '../../test/support/reports.ts';
import {until} from '../../test/support/until.ts';
import {askOnce} from './ask-once.ts';
import {dice} from './dice.ts';
import type {Dice} from './dice.ts';
import {Tally} from './tally.ts';

/**
 * Random load on three nodes for some minutes: requests whole and left early, engines stopped and killed, model files
 * deleted and put back. Afterwards nothing may be left over: no slot, no process, no descriptor, no memory.
 */
export interface SoakReport {
  readonly outcomes: Tally;
  readonly disturbances: Tally;
  /** What was found wrong, in words; empty when all is well. */
  readonly faults: readonly string[];
  /** Of each daemon: resident memory in MiB, by thirds of the time, and descriptors before and after. */
  readonly daemons: readonly DaemonUse[];
}

interface DaemonUse {
  readonly name: string;
  readonly residentMiB: readonly [number, number, number];
  readonly descriptors: readonly [before: number, after: number];
}

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  /** Between two disturbances, at least and at most; `usualPauseMs` unless given. */
  readonly pauseMs?: readonly [min: number, max: number];
  /** It goes on until there have been so many of each, however long that takes; none unless given. */
  readonly atLeast?: {readonly requests: number; readonly disturbances: number};
  readonly say: (line: string) => void;
}

/** Which node has which models: one everywhere, one on two nodes, one on a single node. */
const files = {
  east: ['tiny-count-F16.gguf', 'tiny-other-Q4_0.gguf'],
  west: ['tiny-count-F16.gguf', 'tiny-other-Q4_0.gguf', 'tiny-count-Q8_0.gguf'],
  hub: ['tiny-count-F16.gguf'],
} as const;
const names = ['tiny-count-F16', 'tiny-other-Q4_0', 'tiny-count-Q8_0'];

/** Enough to keep queues filled on engines with two slots each. */
const clients = 6;
/** One disturbance every second or so. */
const usualPauseMs = [500, 2000] as const;
const answerMsMax = 120_000;
const sampleMs = 2000;

/** Before this many minutes V8 has not settled, and growth says nothing. */
const growthMinutesMin = 10;

/** Memory of a daemon may grow by this much between the second and the last third of the time (issue 3). */
const growthMax = 0.1;
/** Connections that are kept for reuse come and go; a leak of one a request would be hundreds. */
const descriptorsMax = 24;

interface Node {
  readonly daemon: Daemon;
  readonly folder: string;
  readonly samples: number[];
  descriptorsBefore: number;
}

export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const {minutes, seed, pauseMs = usualPauseMs, atLeast = {requests: 0, disturbances: 0}, say} = options;
  await using cleanup = new AsyncDisposableStack();
  const teardown = {teardown: (run: () => unknown): void => cleanup.defer(async () => void (await run()))};
  const nodes = await startNodes(teardown, `soak-${process.pid}`);
  const outcomes = new Tally();
  const disturbances = new Tally();
  const random = dice(seed);
  const endMs = performance.now() + minutes * 60_000;
  const goesOn = (): boolean =>
    performance.now() < endMs || outcomes.total < atLeast.requests || disturbances.total < atLeast.disturbances;

  await Promise.all(names.map(async model => askOnce({url: urlOf(nodes[0]), model, ...plain(3)})));
  for (const node of nodes) node.descriptorsBefore = descriptorsOf(node.daemon.pid);
  const load = Array.from({length: clients}, async () => {
    while (goesOn()) outcomes.add((await askOnce(randomAsk(random, nodes))).outcome);
  });
  const trouble = disturb({random, nodes, pauseMs, goesOn}, disturbances);
  const watch = sampleMemory(nodes, goesOn);
  const progress = (async () => {
    for (let minute = 1; minute <= minutes; minute += 1) {
      await sleep(Math.min(60_000, Math.max(0, endMs - performance.now())));
      say(`minute ${minute}: ${outcomes.total} requests, ${disturbances.total} disturbances`);
    }
  })();
  await Promise.all([...load, trouble, watch, progress]);
  return {outcomes, disturbances, ...(await judge(nodes, outcomes, minutes))};
}

async function startNodes(
  teardown: Parameters<typeof startDaemon>[0],
  mesh: string,
): Promise<readonly [Node, Node, Node]> {
  const start = async (name: keyof typeof files): Promise<Node> => {
    const folder = await modelFolder(teardown, ...files[name]);
    const variables = {HEARSAY_THREADS: '1', HEARSAY_CONTEXT: '2048', HEARSAY_SLOTS: '2'};
    const daemon = await startDaemon(teardown, {name, mesh, models: [folder], variables});
    return {daemon, folder, samples: [], descriptorsBefore: 0};
  };
  const nodes = [await start('hub'), await start('east'), await start('west')] as const;
  for (const {daemon} of nodes) {
    await until('every model is known', async () => (await models(daemon.url)).length === names.length, 20_000);
  }
  return [...nodes];
}

function plain(tokens: number): {tokens: number; stream: boolean; msMax: number} {
  return {tokens, stream: true, msMax: answerMsMax};
}

function randomAsk(random: Dice, nodes: readonly Node[]): Parameters<typeof askOnce>[0] {
  const ask = {url: urlOf(random.pick(nodes)), model: random.pick(names), ...plain(random.between(1, 150))};
  const kind = random.next();
  if (kind < 0.2) return {...ask, leaveAfter: random.between(0, 40)};
  return {...ask, stream: kind < 0.8};
}

interface Trouble {
  readonly random: Dice;
  readonly nodes: readonly Node[];
  readonly pauseMs: readonly [min: number, max: number];
  readonly goesOn: () => boolean;
}

async function disturb({random, nodes, pauseMs, goesOn}: Trouble, tally: Tally): Promise<void> {
  while (goesOn()) {
    await sleep(random.between(...pauseMs));
    const node = random.pick(nodes);
    const kind = random.next();
    if (kind < 0.5) await stopEngine(random, node, tally);
    else if (kind < 0.85) killEngine(random, node, tally);
    else await replaceFile(random, node, tally);
  }
}

async function stopEngine(random: Dice, {daemon}: Node, tally: Tally): Promise<void> {
  const {code} = await daemon.cli('stop', random.pick(names));
  tally.add(`stop a model: exit ${code}`);
}

function killEngine(random: Dice, {daemon}: Node, tally: Tally): void {
  const children = childrenWith('--alias', [daemon.pid]);
  if (children.length === 0) return;
  const signal = random.pick(['SIGKILL', 'SIGSEGV', 'SIGTERM'] as const);
  try {
    process.kill(random.pick(children), signal);
    tally.add(`kill an engine: ${signal}`);
  } catch {
    // It has ended meanwhile.
  }
}

/** Deletes a model file and puts it back a moment later. */
async function replaceFile(random: Dice, {folder, daemon}: Node, tally: Tally): Promise<void> {
  const own = files[daemon.name === 'hub' ? 'hub' : daemon.name === 'east' ? 'east' : 'west'];
  const file = random.pick(own);
  await rm(join(folder, file), {force: true});
  await sleep(random.between(100, 1500));
  await copyFile(tinyModel(file), join(folder, file));
  tally.add('delete a model file and put it back');
}

async function sampleMemory(nodes: readonly Node[], goesOn: () => boolean): Promise<void> {
  while (goesOn()) {
    for (const {daemon, samples} of nodes) samples.push(residentMiB(daemon.pid));
    await sleep(sampleMs);
  }
}

async function judge(
  nodes: readonly Node[],
  outcomes: Tally,
  minutes: number,
): Promise<{faults: readonly string[]; daemons: readonly DaemonUse[]}> {
  const faults: string[] = [];
  const bad = outcomes.entries().filter(([name]) => name.startsWith('WRONG') || name === 'gateway gone');
  faults.push(...bad.map(([name, count]) => `${count} requests: ${name}`));
  const daemons: DaemonUse[] = [];
  for (const node of nodes) {
    const {daemon} = node;
    const settle = async (what: string, is: () => Promise<boolean> | boolean): Promise<void> => {
      await until(what, is, 10_000).catch(async () => {
        faults.push(`${daemon.name}: not so: ${what}; there are ${await enginesOf(daemon)}`);
      });
    };
    await settle('every slot is free', async () => (await ownEngines(daemon)).every(({busy}) => busy === 0));
    await settle('nobody waits', async () => (await ownEngines(daemon)).every(({queued}) => queued === 0));
    await settle('no request is in flight', async () => (await status(daemon.url)).inFlight === 0);
    await settle('every llama-server belongs to an engine', async () => {
      return childrenWith('--alias', [daemon.pid]).length === (await ownEngines(daemon)).length;
    });
    const limit = node.descriptorsBefore + descriptorsMax;
    await settle(`at most ${limit} descriptors are open`, () => descriptorsOf(daemon.pid) <= limit);
    const residentByThirds = thirds(node.samples);
    const [, second, last] = residentByThirds;
    if (minutes >= growthMinutesMin && last > (1 + growthMax) * second) {
      faults.push(`${daemon.name}: memory grew from ${second.toFixed(0)} to ${last.toFixed(0)} MiB`);
    }
    const descriptors = [node.descriptorsBefore, descriptorsOf(daemon.pid)] as const;
    daemons.push({name: daemon.name, residentMiB: residentByThirds, descriptors});
  }
  return {faults, daemons};
}

/** In words, for whoever has to find out. */
async function enginesOf(daemon: Daemon): Promise<string> {
  const states = (await ownEngines(daemon)).map(({name, state, failure}) => `${name} (${state}, ${failure ?? 'well'})`);
  return `${childrenWith('--alias', [daemon.pid]).length} processes of ${states.join(', ')}`;
}

async function ownEngines({url}: Daemon): ReturnType<typeof engines> {
  return (await engines(url)).filter(({node}) => node === 'local');
}

function thirds(samples: readonly number[]): readonly [number, number, number] {
  const third = Math.ceil(samples.length / 3);
  const mean = (part: readonly number[]): number => part.reduce((sum, value) => sum + value, 0) / part.length;
  return [mean(samples.slice(0, third)), mean(samples.slice(third, 2 * third)), mean(samples.slice(2 * third))];
}

function residentMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+)/mu.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) / 1024;
}

function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function urlOf(node: Node | undefined): string {
  return node?.daemon.url ?? '';
}
