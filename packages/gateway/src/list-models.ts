import {resolveModel, toNamedModel} from '@hearsay/core';
import type {Capability, ModelReport, Resolution} from '@hearsay/core';
import {namedAliases} from './aliases.ts';
import type {Aliases} from './aliases.ts';
import {badRequest} from './problem.ts';
import type {Problem} from './problem.ts';
import type {JsonObject} from './json.ts';
import {factsOf} from './ollama/lists.ts';

/**
 * Pure: one body that OpenAI clients, Anthropic clients and model pickers can all read (facts: client-apis §2.4).
 * Lists what some node can run, loaded or not.
 */
export function listModels(models: readonly ModelReport[], createdSeconds: number, aliases: Aliases): JsonObject {
  const listed = [
    ...usable(models).map(model => ({id: model.name, shown: model.name, model})),
    ...aliased(models, aliases).map(({alias, model}) => ({id: alias, shown: `${alias} (${model.name})`, model})),
  ];
  return {
    object: 'list',
    data: listed.map(({id, shown, model}) => ({...modelObject(model, createdSeconds), id, display_name: shown})),
    models: listed.map(({id, model}) => llamaObject(id, model, createdSeconds)),
    has_more: false,
    first_id: listed[0]?.id ?? null,
    last_id: listed.at(-1)?.id ?? null,
  };
}

/** Pure: the model that a request of this name would run. */
export function findModel(asked: string, models: readonly ModelReport[], createdSeconds: number): JsonObject | Problem {
  const resolution = resolve(asked, models);
  const model = reportOf(resolution, models);
  if (model !== undefined) return modelObject(model, createdSeconds);
  const close = resolution.kind === 'unknown' && resolution.close.length > 0 ? resolution.close.join(', ') : undefined;
  return badRequest(
    `no node knows a model named ${JSON.stringify(asked.slice(0, 200))}${close ? `; did you mean ${close}?` : ''}`,
    {status: 404, code: 'model_not_found', param: 'model'},
  );
}

/**
 * Pure: as `findModel`, as it is reported; undefined when no node can run it. Of several with this name, one that can
 * do what is needed.
 */
export function modelNamed(
  asked: string,
  models: readonly ModelReport[],
  needs: readonly Capability[] = [],
): ModelReport | undefined {
  return reportOf(resolve(asked, models, needs), models);
}

function resolve(asked: string, models: readonly ModelReport[], needs: readonly Capability[] = []): Resolution {
  const named = usable(models).map(model => ({...toNamedModel(model), capabilities: model.capabilities}));
  return resolveModel(asked, named, ({capabilities}) => Number(needs.every(need => capabilities.includes(need))));
}

function reportOf(resolution: Resolution, models: readonly ModelReport[]): ModelReport | undefined {
  const digest = resolution.kind === 'found' ? resolution.digests[0] : undefined;
  return usable(models).find(report => report.digest === digest);
}

/** Aliases stand in the list as models of their own, because some clients show only names that they know. */
function aliased(
  models: readonly ModelReport[],
  aliases: Aliases,
): readonly {readonly alias: string; readonly model: ModelReport}[] {
  return namedAliases(aliases).flatMap(([alias, name]) => {
    const model = modelNamed(name, models);
    return model === undefined ? [] : [{alias, model}];
  });
}

function modelObject(model: ModelReport, createdSeconds: number): JsonObject {
  return {
    id: model.name,
    object: 'model',
    type: 'model',
    created: createdSeconds,
    created_at: new Date(createdSeconds * 1000).toISOString(),
    owned_by: 'hearsay',
    display_name: model.name,
    context_length: model.contextMax,
    capabilities: model.capabilities,
    status: {value: model.status},
    nodes: model.nodes.map(({name}) => name),
    quantization: model.quant,
    size: model.sizeBytes,
    aliases: model.names.filter(name => name !== model.name),
    digest: model.digest,
  };
}

/**
 * llama-server's clients read what a model can do here, at the same place in the list. Its own empty texts would be
 * taken for dates and digests (facts: client-apis §1.1).
 */
function llamaObject(id: string, model: ModelReport, createdSeconds: number): JsonObject {
  const {capabilities: words, ...facts} = factsOf(model, createdSeconds * 1000);
  const capabilities = [
    ...words,
    ...(model.capabilities.some(each => each === 'vision' || each === 'audio') ? ['multimodal'] : []),
  ];
  return {name: id, model: id, type: 'model', ...facts, capabilities};
}

function usable(models: readonly ModelReport[]): readonly ModelReport[] {
  return models.filter(({problem}) => problem === undefined);
}
