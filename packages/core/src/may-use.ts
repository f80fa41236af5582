import {allows} from './caller.ts';
import type {Caller} from './caller.ts';
import {isNamed} from './candidates.ts';
import type {HeldModel} from './workload.ts';

/** What of a model a key may or may not have a right to. */
interface Usable extends Pick<HeldModel, 'digest' | 'nodes'> {
  readonly names: readonly string[];
}

/** Pure: the key allows the model, and one of the nodes that have it. */
export function mayUse({rights}: Caller, {names, digest, nodes}: Usable): boolean {
  const isOn = (written: string): boolean =>
    nodes.some(node => isNamed({node: node.id, name: node.name}, written, node.local));
  return (
    allows(rights.models, [...names, digest]) && (rights.nodes === undefined || rights.nodes.some(word => isOn(word)))
  );
}
