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

type Asked = Pick<ClientRequest, 'model' | 'needs'>;

/**
 * What the cluster is asked for: the model that the client's name stands for, or that a request without one goes to. It
 * need not know of tools by itself when no model of this name does: llama-server shows them to every model that chats.
 */
export function chooseModel({model: asked, needs}: Asked, choice: Choice): Asked {
  const model = nameFor(asked, needs, choice);
  if (!needs.includes('tools')) return {model, needs};
  const known = modelNamed(model, choice.cluster.models());
  return {model, needs: known?.capabilities.includes('tools') === false ? withoutTools(needs) : needs};
}

function nameFor(asked: string, needs: readonly Capability[], choice: Choice): string {
  const {cluster, aliases, defaultModel} = choice;
  if (asked.trim() !== '') return behindAlias(asked, choice);
  const configured = defaultModel ?? catchAll(aliases);
  if (configured !== undefined) return behindAlias(configured, choice);
  const models = cluster.models();
  return onlyModel(models, needs) || onlyModel(models, withoutTools(needs));
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

function withoutTools(needs: readonly Capability[]): readonly Capability[] {
  return needs.filter(need => need !== 'tools');
}
