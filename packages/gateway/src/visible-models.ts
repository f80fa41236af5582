import type {IncomingMessage} from 'node:http';
import {mayUse, usableNodes} from '@hearsay/core';
import type {Caller, Cluster, EngineReport, ModelReport} from '@hearsay/core';
import {callerIn} from './identify.ts';

/**
 * The models that the key of whoever asks allows, on nodes that it allows: a list that shows more only teaches an
 * application to fail. What of them a policy or the state of a node leaves out is told by the request itself.
 */
export function visibleModels(
  cluster: Pick<Cluster, 'models' | 'engines'>,
  request: IncomingMessage,
): readonly ModelReport[] {
  const caller = callerIn(request);
  const models = cluster.models();
  return caller === undefined ? models : models.flatMap(model => visibleModel(model, cluster, caller) ?? []);
}

/** What a key may know of a model: nothing of the nodes that are not for it. Undefined: not even that there is one. */
export function visibleModel(
  model: ModelReport,
  cluster: Pick<Cluster, 'engines'>,
  caller: Caller,
): ModelReport | undefined {
  if (!mayUse(caller, model)) return undefined;
  if (caller.rights.nodes === undefined) return model;
  const nodes = usableNodes(caller, model.nodes);
  const states = cluster
    .engines()
    .filter(({digest, nodeId}) => digest === model.digest && nodes.some(({id}) => id === nodeId))
    .map(({state}) => state);
  const status = states.includes('ready') ? 'loaded' : states.includes('loading') ? 'loading' : 'unloaded';
  return {...model, nodes, status};
}

/** As `visibleModels`, where they are loaded. */
export function visibleEngines(
  cluster: Pick<Cluster, 'engines' | 'models'>,
  request: IncomingMessage,
): readonly EngineReport[] {
  const caller = callerIn(request);
  const engines = cluster.engines();
  if (caller === undefined) return engines;
  const namesOf = new Map(cluster.models().map(({digest, names}) => [digest, names]));
  return engines.filter(({digest, name: model, node, nodeId: id, nodeName: name}) =>
    mayUse(caller, {names: namesOf.get(digest) ?? [model], digest, nodes: [{id, name, local: node === 'local'}]}),
  );
}
