import {allows} from './caller.ts';
import type {Caller} from './caller.ts';
import {isNamed} from './candidates.ts';
import type {HeldModel} from './workload.ts';

/** Pure: the key allows the model, and one of the nodes that have it. */
export function mayUse(
  {rights}: Caller,
  {names, digest, nodes}: Pick<HeldModel, 'names' | 'digest' | 'nodes'>,
): boolean {
  const isOn = (written: string): boolean =>
    nodes.some(node => isNamed({node: node.id, name: node.name}, written, node.local));
  return (
    allows(rights.models, [...names, digest]) && (rights.nodes === undefined || rights.nodes.some(word => isOn(word)))
  );
}
