import {isModelNamed} from '@hearsay/core';
import type {ModelFacts, ModelPreset, ModelReport} from '@hearsay/core';

interface Holding {
  readonly node: Pick<ModelReport['nodes'][number], 'local'>;
  readonly model: Pick<ModelFacts, 'digest' | 'names' | 'presets'>;
}

/**
 * Pure: of each name the first one's. What this node calls by a name itself is as its own store says: no other node puts
 * words into it.
 */
export function presetsOf(holdings: readonly Holding[]): Pick<ModelReport, 'presets'> {
  const byName = new Map<string, ModelPreset>();
  const own = holdings.filter(({node}) => node.local).map(({model}) => model);
  for (const {node, model} of holdings) {
    for (const preset of model.presets ?? []) {
      const key = preset.name.toLowerCase();
      if (byName.has(key) || (!node.local && own.some(each => isModelNamed(each, preset.name)))) continue;
      byName.set(key, preset);
    }
  }
  return byName.size === 0 ? {} : {presets: [...byName.values()]};
}
