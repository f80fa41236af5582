import {resolveModel} from '@hearsay/core';
import type {EngineHost, Log, ModelStore, NamedModel, StoredModel} from '@hearsay/core';

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
  for (const name of wanted) {
    log('warn', 'a model to preload is not there (yet); see engine.preload', {
      model: name,
      ...hint(name, models.list()),
    });
  }
  return {[Symbol.dispose]: () => watch?.[Symbol.dispose]()};
}

function find(name: string, known: readonly StoredModel[]): StoredModel | undefined {
  const resolution = resolveModel(name, known.map(toNamed));
  return resolution.kind === 'found' ? known.find(({digest}) => resolution.digests.includes(digest)) : undefined;
}

/** What may be wrong with a name, or with the model that it means. */
function hint(name: string, all: readonly StoredModel[]): {readonly problem: string} | {readonly close?: string} {
  const problem = find(name, all)?.problem;
  if (problem !== undefined) return {problem};
  const resolution = resolveModel(name, all.map(toNamed));
  return resolution.kind === 'unknown' && resolution.close.length > 0 ? {close: resolution.close.join(', ')} : {};
}

function toNamed({digest, names, demo}: StoredModel): NamedModel {
  return {digest, names, demo, local: true, holders: 1};
}
