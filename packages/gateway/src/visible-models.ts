import type {IncomingMessage} from 'node:http';
import {mayUse} from '@hearsay/core';
import type {Cluster, ModelReport} from '@hearsay/core';
import {callerIn} from './identify.ts';

/** The models that whoever asks could use: a list that shows more only teaches an application to fail. */
export function visibleModels(cluster: Pick<Cluster, 'models'>, request: IncomingMessage): readonly ModelReport[] {
  const caller = callerIn(request);
  const models = cluster.models();
  return caller === undefined ? models : models.filter(model => mayUse(caller, model));
}
