import {withoutDemo} from '@hearsay/core';
import type {Capability, ClientRequest, Cluster, ModelReport} from '@hearsay/core';
import {catchAll, resolveAlias} from './aliases.ts';
import type {Aliases} from './aliases.ts';
import {modelNamed} from './list-models.ts';

interface Choice {
  readonly cluster: Pick<Cluster, 'models'>;
  readonly aliases: Aliases;
  /** For requests that name no model; undefined: the only one that can answer them. */
  readonly defaultModel: string | undefined;
}

/** The name that the cluster is asked for: what the client's name stands for, or what a request without one goes to. */
export function chooseModel({model, needs}: Pick<ClientRequest, 'model' | 'needs'>, choice: Choice): string {
  const {cluster, aliases, defaultModel} = choice;
  if (model.trim() !== '') return behindAlias(model, choice);
  const configured = defaultModel ?? catchAll(aliases);
  return configured === undefined ? onlyModel(cluster.models(), needs) : behindAlias(configured, choice);
}

/** What an alias stands for; the catch-all only for a name that no model has. */
export function behindAlias(asked: string, {cluster, aliases}: Omit<Choice, 'defaultModel'>): string {
  const target = resolveAlias(asked, aliases);
  const last = catchAll(aliases);
  return last === undefined || modelNamed(target, cluster.models()) !== undefined ? target : last;
}

/** Pure: the one model that can do this, a writing one where several can; empty when that is not one. */
function onlyModel(models: readonly ModelReport[], needs: readonly Capability[]): string {
  const usable = withoutDemo(models.filter(({problem}) => problem === undefined));
  const able = usable.filter(({capabilities}) => needs.every(need => capabilities.includes(need)));
  for (const some of [able, able.filter(({capabilities}) => capabilities.includes('completion'))]) {
    if (new Set(some.map(({digest}) => digest)).size === 1) return some[0]?.name ?? '';
  }
  return '';
}
