import type {Cluster, ModelReport} from '@hearsay/core';
import {resolveAlias} from '../aliases.ts';
import type {Aliases} from '../aliases.ts';
import {modelNamed} from '../list-models.ts';
import type {FindModel, KnownModel} from './known-model.ts';
import type {Presets} from './presets.ts';

/** Models of the whole mesh by their names; presets of this node and aliases of its owner come first. */
export function modelFinder(cluster: Cluster, presets: Presets, aliases: Aliases): FindModel {
  return asked => {
    const models = cluster.models();
    const preset = presets.find(asked);
    const target = resolveAlias(preset?.from ?? asked, aliases);
    const report = modelNamed(target, models);
    return report ? known(asked, target, report, preset) : undefined;
  };
}

function known(asked: string, target: string, report: ModelReport, preset: KnownModel['preset']): KnownModel {
  return {kind: 'known', asked, target, report, preset};
}
