import {allows} from './caller.ts';
import type {Caller} from './caller.ts';
import {isNamed} from './candidates.ts';
import type {Policy} from './policy.ts';
import type {HeldModel} from './workload.ts';

type Holder = HeldModel['nodes'][number];

/** What of a model a key may or may not have a right to. */
interface Usable extends Pick<HeldModel, 'digest' | 'nodes'> {
  readonly names: readonly string[];
}

/** Pure: the key allows the model, and one of the nodes that have it. */
export function mayUse(caller: Caller, {names, digest, nodes}: Usable): boolean {
  const isAnywhere = caller.rights.nodes === undefined || usableNodes(caller, nodes).length > 0;
  return allows(caller.rights.models, [...names, digest]) && isAnywhere;
}

/** Pure: those of the nodes that the key allows. */
export function usableNodes<Node extends Holder>({rights}: Caller, nodes: readonly Node[]): readonly Node[] {
  return rights.nodes === undefined ? nodes : namedNodes(nodes, rights.nodes);
}

/** Pure: those of the nodes that the policy allows, and the key too. */
export function nodesFor<Node extends Holder>(
  {placement, exclude}: Policy,
  caller: Caller | undefined,
  nodes: readonly Node[],
): readonly Node[] {
  const usable = caller ? usableNodes(caller, nodes) : nodes;
  const placed = placement.kind === 'pin' ? namedNodes(usable, placement.nodes) : usable;
  const excluded = namedNodes(placed, exclude);
  return placed.filter(node => !excluded.includes(node));
}

/** Pure: those of the nodes that one of the words means. */
export function namedNodes<Node extends Holder>(nodes: readonly Node[], words: readonly string[]): readonly Node[] {
  return nodes.filter(({id, name, local}) => words.some(word => isNamed({node: id, name}, word, local)));
}
