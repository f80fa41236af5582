import {allows} from './caller.ts';
import type {Caller} from './caller.ts';
import {isNamed} from './candidates.ts';
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
  const {nodes: allowed} = rights;
  if (allowed === undefined) return nodes;
  return nodes.filter(({id, name, local}) => allowed.some(word => isNamed({node: id, name}, word, local)));
}
