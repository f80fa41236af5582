import {automatic, decide, emptyView} from '@hearsay/core';
import type {KnownNode, NodeId, Reach} from '@hearsay/core';
import {clusters} from './hardware.ts';
import {digestOf, simNodeId} from './sim-facts.ts';
import {SimNode} from './sim-node.ts';
import {chance, Timeline} from './timeline.ts';

/** In microseconds. */
interface Times {
  readonly p50: number;
  readonly p99: number;
}

export interface DecisionTimes {
  readonly nodes: number;
  readonly decision: Times;
  /** A fixed loop of about the same length in the same minute: what the machine alone adds. */
  readonly floor: Times;
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
  const decisions: number[] = [];
  const floor: number[] = [];
  let turns = 1000;
  for (let round = 0; round < 2 * rounds; round += 1) {
    const startMs = performance.now();
    decide({asked: {...asked, request: String(round)}, question, self, nodes: view.nodes, reach});
    const decidedMs = performance.now();
    spin(turns);
    const spunMs = performance.now();
    if (round < rounds) {
      // The first half warms up the compiler and finds how many turns take as long as a decision.
      const isShorter = spunMs - decidedMs < decidedMs - startMs;
      turns += isShorter ? Math.ceil(turns / 50) : -Math.floor(turns / 50);
      continue;
    }
    decisions.push(1000 * (decidedMs - startMs));
    floor.push(1000 * (spunMs - decidedMs));
  }
  return {nodes: count, decision: timesOf(decisions), floor: timesOf(floor)};
}

function timesOf(micros: readonly number[]): Times {
  const sorted = micros.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(share * sorted.length)] ?? 0;
  return {p50: at(0.5), p99: at(0.99)};
}

/** Nothing but arithmetic: no memory, so that only the machine can make it take longer. */
function spin(turns: number): number {
  let hash = 1;
  for (let turn = 0; turn < turns; turn += 1) hash = Math.imul(hash ^ turn, 0x01000193);
  return hash;
}
