import {fork} from 'node:child_process';
import type {ChildProcess} from 'node:child_process';
import {once} from 'node:events';
import {join} from 'node:path';
import {parseArgs} from 'node:util';
import {setTimeout as sleep} from 'node:timers/promises';
import type {Ask, Measured, Sighting, Told} from '../test/fixtures/gossip-nodes.ts';
import {until} from '../test/support/until.ts';
import {quantile} from './bench/quantile.ts';

/**
 * `npm run bench:gossip`: what it costs a node to be one of N. Real libp2p nodes with real announcing and listening, in
 * several processes on loopback, all connected with all, each with a beat every clamp(2, N/10, 30) seconds. Printed for
 * each N: how long a record takes to the others, and processor time and bytes of one node in a second, with everything
 * that a mesh at rest does (gossip, exchanges, pings).
 *
 * `--nodes 3,10,20,50` · `--seconds 30` · `--processes 4`
 */
const {values: options} = parseArgs({
  options: {
    nodes: {type: 'string', default: '3,10,20,50'},
    seconds: {type: 'string', default: '30'},
    processes: {type: 'string', default: '4'},
  },
});
const seconds = Number(options.seconds);
const heads = [
  'delivered',
  'p50 ms',
  'p99 ms',
  'records/s',
  'kB/s a node',
  'µs/s a node',
  '% of a core',
  'kB/record',
  'ms/record',
];

console.log(`records for ${seconds} s at rest; goal: p99 of 20 nodes ≤ 500 ms (stretch 100)\n`);
console.log('nodes'.padEnd(8) + heads.map(head => head.padStart(13)).join(''));
for (const nodes of options.nodes.split(',').map(Number)) console.log(await measureMesh(nodes));

async function measureMesh(nodes: number): Promise<string> {
  const children = Array.from({length: Math.min(Number(options.processes), nodes)}, () =>
    fork(join(import.meta.dirname, '..', 'test', 'fixtures', 'gossip-nodes.ts')),
  );
  try {
    await startNodes(children, nodes);
    await sleep(3000); // the rush of everybody's first exchange is over
    const measured = await Promise.all(children.map(async child => measuredBy(child)));
    return row(nodes, measured);
  } finally {
    for (const child of children) if (child.connected) child.disconnect(); // they end with it
  }
}

async function startNodes(children: readonly ChildProcess[], nodes: number): Promise<void> {
  const seeds: string[] = [];
  let first = 0;
  for (const [index, child] of children.entries()) {
    const count = Math.ceil((nodes - first) / (children.length - index));
    const told = await talk(child, {kind: 'start', first, count, seeds});
    if (told.kind === 'started') seeds.push(...told.ports.map(port => `127.0.0.1:${port}`));
    first += count;
  }
  await until(
    'everybody knows everybody',
    async () => {
      const told = await Promise.all(children.map(async child => talk(child, {kind: 'count'})));
      return told.every(each => each.kind === 'counted' && each.alive.every(alive => alive === nodes));
    },
    60_000,
  );
}

async function measuredBy(child: ChildProcess): Promise<Measured> {
  const told = await talk(child, {kind: 'measure', ms: 1000 * seconds});
  if (told.kind !== 'measured') throw new Error(`expected figures, got ${told.kind}`);
  return told;
}

async function talk(child: ChildProcess, ask: Ask): Promise<Told> {
  const answered = once(child, 'message');
  child.send(ask);
  const [told]: Told[] = await answered;
  if (told === undefined) throw new Error('a process of the mesh gave no answer');
  return told;
}

/** Records that were made in the last two seconds may still be under way; they are left out. */
function row(nodes: number, measured: readonly Measured[]): string {
  const made = measured.flatMap(each => each.made);
  const endMicros = Math.max(...made.map(({micros}) => micros)) - 2e6;
  const times = new Map(made.filter(({micros}) => micros < endMicros).map(({record, micros}) => [record, micros]));
  const delays = measured.flatMap(({heard}) => heard.flatMap(each => delayOf(each, times)));
  const sum = (value: (each: Measured) => number): number => measured.reduce((total, each) => total + value(each), 0);
  const heardPerSecond = sum(({heard, ms}) => heard.length / (ms / 1000)) / nodes;
  const bytesPerSecond = sum(({bytesSent, ms}) => bytesSent / (ms / 1000)) / nodes;
  const processorShare = sum(({processorMs, ms}) => processorMs / ms) / nodes;
  const cells = [
    `${((100 * delays.length) / (times.size * (nodes - 1))).toFixed(1)} %`,
    quantile(delays, 0.5).toFixed(1),
    quantile(delays, 0.99).toFixed(1),
    heardPerSecond.toFixed(1),
    (bytesPerSecond / 1000).toFixed(1),
    (1e6 * processorShare).toFixed(0),
    (100 * processorShare).toFixed(2),
    (bytesPerSecond / 1000 / heardPerSecond).toFixed(1),
    ((1000 * processorShare) / heardPerSecond).toFixed(2),
  ];
  return String(nodes).padEnd(8) + cells.map(cell => cell.padStart(13)).join('');
}

function delayOf({record, micros}: Sighting, times: ReadonlyMap<string, number>): number[] {
  const madeMicros = times.get(record);
  return madeMicros === undefined ? [] : [(micros - madeMicros) / 1000];
}
