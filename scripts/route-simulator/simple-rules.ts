import {modelOf} from './hardware.ts';
import type {SimEntry} from './sim-entry.ts';
import type {SimNode} from './sim-node.ts';
import type {SimRequest} from './sim-request.ts';
import type {Chance} from './timeline.ts';

export type SimpleRule = 'random' | 'roundRobin' | 'leastOutstanding' | 'points';

type Choose = (able: readonly SimNode[], request: SimRequest, entry: SimEntry, next: Chance) => SimNode | undefined;

/** What others do: each gets the nodes that are up and have the file, for nothing. */
export const simpleRules: Readonly<Record<SimpleRule, Choose>> = {
  random: (able, _request, _entry, next) => able[Math.floor(next() * able.length)],
  roundRobin(able, _request, entry) {
    entry.turn += 1;
    return able[entry.turn % Math.max(1, able.length)];
  },
  leastOutstanding: (able, _request, entry, next) => least(able, ({index}) => entry.outstanding[index] ?? 0, next),
  /** A score of points for what speaks for a node, with caps, and exact queues at one central place. */
  points: (able, {model}, _entry, next) => least(able, node => -points(node, model), next),
};

function points(node: SimNode, model: number): number {
  const {gigabytes} = node.machine.kind;
  const isLoaded = node.engines.has(model);
  let free = gigabytes;
  let load = 0;
  for (const engine of node.engines.values()) {
    free -= modelOf(engine.model).gigabytes;
    load += engine.running.length + engine.queue.length;
  }
  const fit = free / modelOf(model).gigabytes;
  const room = fit > 2 ? 20 : fit > 1.5 ? 15 : fit > 1.2 ? 8 : fit > 1 ? 3 : 0;
  const suited =
    modelOf(model).billions > 30 ? (gigabytes > 60 ? 15 : 5) : gigabytes > 60 ? 3 : gigabytes > 20 ? 8 : 15;
  return (isLoaded ? 70 : 10 + room) - Math.min(30, 6 * load) - Math.min(25, node.wait(model) / 10) + suited;
}

/** One of the best, by lot. */
function least(nodes: readonly SimNode[], value: (node: SimNode) => number, next: Chance): SimNode | undefined {
  const best = Math.min(...nodes.map(value));
  const equals = nodes.filter(node => value(node) === best);
  return equals[Math.floor(next() * equals.length)];
}
