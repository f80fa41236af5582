import {resolveModel} from '@hearsay/core';
import type {EngineHost, Log, ModelStore, StoredModel} from '@hearsay/core';

interface PreloadDeps {
  readonly engines: EngineHost;
  readonly models: ModelStore;
  readonly log: Log;
}

/**
 * Loads what the owner wants to be loaded from the start, on this node only, as soon as each model is found; they stay
 * loaded. A name that is not there yet is waited for: its folder may be mounted later.
 */
export function startPreload(names: readonly string[], {engines, models, log}: PreloadDeps): Disposable {
  const wanted = new Set(names);
  let watch: Disposable | undefined;

  function look(): void {
    const known = models.list().filter(({problem}) => problem === undefined);
    for (const name of wanted) {
      const model = find(name, known);
      if (model === undefined) continue;
      wanted.delete(name);
      const refusal = engines.load(model, {context: undefined, slots: undefined, keep: true});
      if (refusal !== undefined) log('warn', 'a model cannot be preloaded', {model: name, reason: refusal.message});
    }
    if (wanted.size === 0) watch?.[Symbol.dispose]();
  }

  if (wanted.size > 0) watch = models.onChange(look);
  look();
  if (wanted.size > 0) log('warn', 'models to preload are not on this machine (yet)', {models: [...wanted]});
  return {[Symbol.dispose]: () => watch?.[Symbol.dispose]()};
}

function find(name: string, known: readonly StoredModel[]): StoredModel | undefined {
  const named = known.map(({digest, names, demo}) => ({digest, names, demo, local: true, holders: 1}));
  const resolution = resolveModel(name, named);
  return resolution.kind === 'found' ? known.find(({digest}) => resolution.digests.includes(digest)) : undefined;
}
