import {resolveModel, toNamedModel} from '@hearsay/core';
import type {ModelReport} from '@hearsay/core';
import {badRequest} from './problem.ts';
import type {Problem} from './problem.ts';
import type {JsonObject} from './json.ts';

/**
 * Pure: one body that OpenAI clients, Anthropic clients and model pickers can all read (facts: client-apis §2.4).
 * Lists what some node can run, loaded or not.
 */
export function listModels(models: readonly ModelReport[], createdSeconds: number): JsonObject {
  const data = usable(models).map(model => modelObject(model, createdSeconds));
  const [first, last] = [data[0]?.['id'] ?? null, data.at(-1)?.['id'] ?? null];
  return {object: 'list', data, has_more: false, first_id: first, last_id: last};
}

/** Pure: the model that a request of this name would run. */
export function findModel(asked: string, models: readonly ModelReport[], createdSeconds: number): JsonObject | Problem {
  const known = usable(models);
  const resolution = resolveModel(asked, known.map(toNamedModel));
  const digest = resolution.kind === 'found' ? resolution.digests[0] : undefined;
  const model = known.find(report => report.digest === digest);
  if (model !== undefined) return modelObject(model, createdSeconds);
  const close = resolution.kind === 'unknown' && resolution.close.length > 0 ? resolution.close.join(', ') : undefined;
  return badRequest(
    `no node knows a model named ${JSON.stringify(asked.slice(0, 200))}${close ? `; did you mean ${close}?` : ''}`,
    {status: 404, code: 'model_not_found', param: 'model'},
  );
}

function modelObject(model: ModelReport, createdSeconds: number): JsonObject {
  return {
    id: model.name,
    object: 'model',
    type: 'model',
    created: createdSeconds,
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

function usable(models: readonly ModelReport[]): readonly ModelReport[] {
  return models.filter(({problem}) => problem === undefined);
}
