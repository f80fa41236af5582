import {Fault} from '@hearsay/core';
import type {Cluster} from '@hearsay/core';
import {catchAll, resolveAlias} from './aliases.ts';
import type {Aliases} from './aliases.ts';

interface Choice {
  readonly cluster: Pick<Cluster, 'route'>;
  readonly aliases: Aliases;
  /** For requests that name no model; undefined: the only one that can answer them. */
  readonly defaultModel: string | undefined;
}

/** The name that the cluster is asked for: what the client's name stands for, or what a request without one goes to. */
export function chooseModel(asked: string, choice: Choice): string {
  if (asked.trim() !== '') return behindAlias(asked, choice);
  const configured = choice.defaultModel ?? catchAll(choice.aliases);
  return configured === undefined ? '' : behindAlias(configured, choice);
}

/** What an alias stands for; the catch-all only for a name that nobody knows. */
export function behindAlias(asked: string, {cluster, aliases}: Omit<Choice, 'defaultModel'>): string {
  const target = resolveAlias(asked, aliases);
  const last = catchAll(aliases);
  return last === undefined || isKnown(target, cluster) ? target : last;
}

/** As the cluster sees it: also workloads and `model@node` are names. */
function isKnown(model: string, cluster: Pick<Cluster, 'route'>): boolean {
  try {
    cluster.route({model, needs: [], policy: undefined, promptBytes: 0});
    return true;
  } catch (error) {
    if (error instanceof Fault) return error.code !== 'MODEL_NOT_FOUND';
    throw error;
  }
}
