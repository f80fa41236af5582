import type {ClientRequest} from '@hearsay/core';
import {isObject, parseObject} from '../json.ts';
import type {JsonObject} from '../json.ts';
import {isProblem} from '../problem.ts';
import type {Preset} from './known-model.ts';
import {translateOptions} from './options.ts';

/** What `num_ctx` and `repeat_last_n: -1` mean to a preset whose model is not known here; llama-server takes less. */
const contextTokensMax = 1_000_000;

/**
 * Pure: a request of another dialect for a name that an Ollama client made: the model behind it, with what the preset
 * says and sets beforehand. What the request itself says and sets comes first.
 */
export function applyPreset(request: ClientRequest, {from, system, messages, parameters}: Preset): ClientRequest {
  const body = isJson(request) ? parseObject(new TextDecoder().decode(request.body)) : undefined;
  if (body === undefined) return {...request, model: from};
  const options = translateOptions(parameters, contextTokensMax);
  const defaults = isProblem(options) ? {} : options.fields;
  const said = sayBefore(body, request.endpoint, system, messages);
  return {...request, model: from, body: Buffer.from(JSON.stringify({...defaults, ...body, ...said}))};
}

function isJson({contentType = 'application/json'}: ClientRequest): boolean {
  return contentType.startsWith('application/json');
}

function sayBefore(
  body: JsonObject,
  endpoint: ClientRequest['endpoint'],
  system: string,
  before: readonly JsonObject[],
): JsonObject {
  const {messages} = body;
  if (!Array.isArray(messages)) return {};
  const list: readonly unknown[] = messages;
  if (endpoint === '/v1/messages') {
    return {messages: [...before, ...list], ...(system === '' || body['system'] !== undefined ? {} : {system})};
  }
  const hasSystem = list.some(each => isObject(each) && (each['role'] === 'system' || each['role'] === 'developer'));
  const first = hasSystem || system === '' ? [] : [{role: 'system', content: system}];
  return {messages: [...first, ...before, ...list]};
}
