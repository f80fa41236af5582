import type {Cluster, ModelReport} from '@hearsay/core';
import type {Aliases} from '../aliases.ts';
import {behindAlias} from '../choose-model.ts';
import {modelNamed} from '../list-models.ts';
import {storedPreset} from './known-model.ts';
import type {FindModel, KnownModel} from './known-model.ts';
import type {Presets} from './presets.ts';

/** Models of the whole mesh by their names; presets of this node and aliases of its owner come first. */
export function modelFinder(cluster: Cluster, presets: Presets, aliases: Aliases): FindModel {
  return (asked, needs) => {
    const models = cluster.models();
    const preset = presets.find(asked);
    const target = modelBehind(asked, {cluster, presets, aliases});
    const report = modelNamed(target, models, needs);
    return report ? known(asked, target, report, preset ?? storedPreset(target, target, report)) : undefined;
  };
}

interface Names {
  readonly cluster: Pick<Cluster, 'route'>;
  readonly presets: Presets;
  readonly aliases: Aliases;
}

/** The name that the cluster is asked for: what a preset or an alias stands for, else the name itself. */
export function modelBehind(asked: string, names: Names): string {
  return behindAlias(names.presets.find(asked)?.from ?? asked, names);
}

/** Pure: all names that people gave to models, as lists of other dialects show them. */
export function givenNames({presets, aliases}: Omit<Names, 'cluster'>): Aliases {
  return {
    ...Object.fromEntries(presets.list().map(({name, from}) => [name.replace(/:latest$/u, ''), from])),
    ...aliases,
  };
}

function known(asked: string, target: string, report: ModelReport, preset: KnownModel['preset']): KnownModel {
  return {kind: 'known', asked, target, report, preset};
}
