import {automatic, candidatesFor, emptyView, rank} from '@hearsay/core';
import type {KnownNode, NodeId, Reach} from '@hearsay/core';
import {clusters} from './hardware.ts';
import {digestOf, simNodeId} from './sim-facts.ts';
import {SimNode} from './sim-node.ts';
import {chance, Timeline} from './timeline.ts';

export interface DecisionTimes {
  readonly nodes: number;
  readonly p50Micros: number;
  readonly p99Micros: number;
  /** Of the processor, so that it does not matter what else the machine does. */
  readonly meanCpuMicros: number;
}

const ending = {finished: () => undefined, changed: () => undefined};

/** How long one choice takes, from the view to the explained order, with that many nodes that all have the model. */
export function measureDecisions(count: number, rounds: number): DecisionTimes {
  const world = {timeline: new Timeline(), next: chance(1), ending, guessError: undefined, knowsAll: true};
  const machines = clusters.twenty.filter(({models}) => models.includes(1));
  const nodes = Array.from({length: count}, (_, index) => {
    const machine = machines[index % machines.length];
    if (!machine) throw new RangeError('no machine has the model');
    const node = new SimNode(index, machine, world);
    if (index % 3 === 0) node.preload(1);
    return node;
  });
  const [own] = nodes;
  if (!own) throw new RangeError('no nodes');
  const known = nodes.slice(1).map((node): [NodeId, KnownNode] => [
    node.id,
    {
      beat: node.beat(1e9),
      signed: {node: node.id, payload: new Uint8Array(), signature: new Uint8Array()},
      madeAtMs: 0,
      inventory: {digest: '', models: node.models},
    },
  ]);
  const view = {...emptyView, nodes: new Map(known)};
  const reach = new Map<NodeId, Reach>(
    nodes.map(({id, index}) => [
      id,
      {roundTripMs: 1 + (index % 7), relayed: false, quarantinedUntilMs: -Infinity, failures: 0, ownOffers: 0},
    ]),
  );
  const self = {beat: own.beat(1e9), models: own.models};
  const hits = new Map([[simNodeId(3), 2000]]);
  const question = {
    digests: [digestOf(1)],
    needs: ['chat' as const],
    policy: automatic,
    tried: new Set<NodeId>(),
    busy: new Set<NodeId>(),
    hits,
    nowMs: 100,
  };
  const asked = {request: '', spread: 'auto' as const, promptBytes: 8000, maxTokens: undefined};
  const micros: number[] = [];
  let before = process.cpuUsage();
  for (let round = 0; round < 2 * rounds; round += 1) {
    if (round === rounds) before = process.cpuUsage();
    const startMs = performance.now();
    rank(candidatesFor(question, self, view, reach), {...asked, request: String(round)});
    if (round >= rounds) micros.push(1000 * (performance.now() - startMs)); // the first half warms up the compiler
  }
  const sorted = micros.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(share * sorted.length)] ?? 0;
  const {user, system} = process.cpuUsage(before);
  return {meanCpuMicros: (user + system) / rounds, nodes: count, p50Micros: at(0.5), p99Micros: at(0.99)};
}
