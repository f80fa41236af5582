import type {Environment, HostedService, TextStore} from '@hearsay/core';
import {HostedBudget} from './hosted-budget.ts';
import {HostedWorker} from './hosted-worker.ts';
import type {HostedConfig} from './hosted-worker.ts';

export interface HostedDeps extends Environment {
  /** What the services have cost. */
  readonly store: TextStore;
}

export interface HostedServices extends AsyncDisposable {
  readonly services: readonly HostedService[];
}

/** Opens the hosted services of the config. Nothing is sent to any before a request is offered to it. */
export async function startHosted(configs: readonly HostedConfig[], deps: HostedDeps): Promise<HostedServices> {
  const budget = await HostedBudget.open(deps.store, deps);
  const services = configs.map(config => new HostedWorker(config, budget, deps));
  return {
    services,
    async [Symbol.asyncDispose]() {
      for (const service of services) await service[Symbol.asyncDispose]();
    },
  };
}
