import type {IncomingMessage} from 'node:http';
import {allows, isNamed} from '@hearsay/core';
import type {Caller, Cluster, ModelReport} from '@hearsay/core';
import {callerIn} from './identify.ts';

/** The models that whoever asks could use: a list that shows more only teaches an application to fail. */
export function visibleModels(cluster: Pick<Cluster, 'models'>, request: IncomingMessage): readonly ModelReport[] {
  const caller = callerIn(request);
  const models = cluster.models();
  return caller === undefined ? models : models.filter(model => mayUse(caller, model));
}

/** Pure: the key allows the model, and one of the nodes that have it. */
export function mayUse({rights}: Caller, {name, names, digest, nodes}: ModelReport): boolean {
  const isOn = (written: string): boolean =>
    nodes.some(node => isNamed({node: node.id, name: node.name}, written, node.local));
  return (
    allows(rights.models, [name, ...names, digest]) &&
    (rights.nodes === undefined || rights.nodes.some(word => isOn(word)))
  );
}
