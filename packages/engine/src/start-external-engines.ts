import {Fault} from '@hearsay/core';
import type {Busy, Digest, EngineHost, EngineSnapshot, Environment, LoadWish, LogPage} from '@hearsay/core';
import type {MemoryFacts, ModelStore, Refusal, Reservation, ReserveOptions, StoredModel} from '@hearsay/core';
import {ExternalEngine} from './external-engine.ts';
import type {ExternalEngineConfig} from './external-engine.ts';

/** The engines and models of this machine. */
export interface Local {
  readonly engines: EngineHost;
  readonly models: ModelStore;
}

/**
 * Adds the servers that somebody else runs here: their models appear among the stored ones and their slots among ours,
 * so that nothing else needs to know of them. Disposing ends only what is added.
 */
export async function startExternalEngines(
  configs: readonly ExternalEngineConfig[],
  own: Local,
  environment: Environment,
): Promise<Local & AsyncDisposable> {
  const listeners = {models: new Set<{readonly call: () => void}>(), slots: new Set<{readonly call: () => void}>()};
  let changes = 0;
  // A slot that is taken or given back changes nothing of the models, which others would encode and hash anew.
  const changed = (what: 'models' | 'slots'): void => {
    changes += 1;
    for (const {call} of listeners.slots) call();
    if (what === 'models') for (const {call} of listeners.models) call();
  };
  const externals = configs.map(config => new ExternalEngine(config, changed, environment));
  await Promise.all(externals.map(async external => external.start()));

  const onChange = (inner: ModelStore | EngineHost, what: 'models' | 'slots', call: () => void): Disposable => {
    const listener = {call};
    listeners[what].add(listener);
    const watch = inner.onChange(call);
    return {
      [Symbol.dispose]: () => {
        listeners[what].delete(listener);
        watch[Symbol.dispose]();
      },
    };
  };
  const stored = (): readonly StoredModel[] =>
    externals.flatMap(external => external.models().map(model => model.stored));
  const isExternal = (key: string): boolean => stored().some(model => model.key === key);

  const dispose = async (): Promise<void> => {
    await Promise.all(externals.map(async external => external[Symbol.asyncDispose]()));
  };
  const models: ModelStore = {
    list: () => [...own.models.list(), ...stored()],
    find: (digest: Digest) => own.models.find(digest) ?? stored().find(model => model.digest === digest),
    onChange: call => onChange(own.models, 'models', call),
    [Symbol.asyncDispose]: dispose,
  };
  const engines: EngineHost = {
    reserve(model: StoredModel, options: ReserveOptions): Reservation | Busy | Refusal {
      for (const external of externals) {
        const answer = external.reserve(model.key, options);
        if (answer !== undefined) return answer;
      }
      return own.engines.reserve(model, options);
    },
    load: (model: StoredModel, wish: LoadWish) => (isExternal(model.key) ? undefined : own.engines.load(model, wish)),
    async stop(key: string): Promise<void> {
      if (!isExternal(key)) return own.engines.stop(key);
      throw new Fault('BAD_REQUEST', 'an external engine is not started by hearsay and not stopped by it either');
    },
    engines: (): readonly EngineSnapshot[] => [
      ...own.engines.engines(),
      ...externals.flatMap(external => external.engines()),
    ],
    logs: (key: string, after: number): LogPage => own.engines.logs(key, after),
    memory: (): MemoryFacts => own.engines.memory(),
    hardware: () => own.engines.hardware(),
    loadSeq: () => own.engines.loadSeq() + changes,
    onChange: call => onChange(own.engines, 'slots', call),
    describe: () => own.engines.describe(),
    [Symbol.asyncDispose]: dispose,
  };
  return {engines, models, [Symbol.asyncDispose]: dispose};
}
