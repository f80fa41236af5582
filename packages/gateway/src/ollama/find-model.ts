import {resolveModel, toNamedModel} from '@hearsay/core';
import type {Capability, Cluster, ModelReport} from '@hearsay/core';
import type {Aliases} from '../aliases.ts';
import {behindAlias} from '../choose-model.ts';
import {modelNamed} from '../list-models.ts';
import {badRequest} from '../problem.ts';
import type {Problem} from '../problem.ts';
import {storedPreset} from './known-model.ts';
import type {FindModel, KnownModel} from './known-model.ts';
import type {Presets} from './presets.ts';

/** Models of the whole mesh by their names; presets of this node and aliases of its owner come first. */
export function modelFinder(cluster: Cluster, presets: Presets, aliases: Aliases): FindModel {
  const find = (asked: string, needs?: readonly Capability[]): KnownModel | undefined => {
    const models = cluster.models();
    const preset = presets.find(asked);
    const target = modelBehind(asked, {cluster, presets, aliases});
    const report = modelNamed(target, models, needs);
    return report ? known(asked, target, report, preset ?? storedPreset(target, target, report)) : undefined;
  };
  const whyNot = (asked: string): Problem | undefined =>
    damaged(asked, modelBehind(asked, {cluster, presets, aliases}), cluster.models());
  return Object.assign(find, {whyNot});
}

/** Of this node only: others do not tell of files that they cannot use. */
function damaged(asked: string, target: string, models: readonly ModelReport[]): Problem | undefined {
  const resolution = resolveModel(target, models.map(toNamedModel));
  const digest = resolution.kind === 'found' ? resolution.digests[0] : undefined;
  const reason = models.find(report => report.digest === digest)?.problem;
  if (reason === undefined) return undefined;
  const message = `model '${asked.slice(0, 200)}' cannot be used: ${reason}`;
  return badRequest(message, {status: 500, code: 'bad_file', headers: {'x-should-retry': 'false'}});
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
