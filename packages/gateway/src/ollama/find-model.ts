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
    const target = modelBehind(asked, {presets, aliases});
    const report = modelNamed(target, models);
    return report ? known(asked, target, report, preset) : undefined;
  };
}

interface Names {
  readonly presets: Presets;
  readonly aliases: Aliases;
}

/** Pure: the name that the cluster is asked for: what a preset or an alias stands for, else the name itself. */
export function modelBehind(asked: string, {presets, aliases}: Names): string {
  return resolveAlias(presets.find(asked)?.from ?? asked, aliases);
}

/** Pure: all names that people gave to models, as lists of other dialects show them. */
export function givenNames({presets, aliases}: Names): Aliases {
  return {
    ...Object.fromEntries(presets.list().map(({name, from}) => [name.replace(/:latest$/u, ''), from])),
    ...aliases,
  };
}

function known(asked: string, target: string, report: ModelReport, preset: KnownModel['preset']): KnownModel {
  return {kind: 'known', asked, target, report, preset};
}
