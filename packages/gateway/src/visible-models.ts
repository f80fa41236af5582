import type {IncomingMessage} from 'node:http';
import {mayUse} from '@hearsay/core';
import type {Cluster, EngineReport, ModelReport} from '@hearsay/core';
import {callerIn} from './identify.ts';

/** The models that whoever asks could use: a list that shows more only teaches an application to fail. */
export function visibleModels(cluster: Pick<Cluster, 'models'>, request: IncomingMessage): readonly ModelReport[] {
  const caller = callerIn(request);
  const models = cluster.models();
  return caller === undefined ? models : models.filter(model => mayUse(caller, model));
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
