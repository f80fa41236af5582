import {isProven, parseKeepAlive} from '@hearsay/core';
import type {Capability, Endpoint} from '@hearsay/core';
import {isObject} from '../json.ts';
import type {JsonObject} from '../json.ts';
import {badRequest, isProblem} from '../problem.ts';
import type {Problem} from '../problem.ts';
import {cannot, modelOf} from './known-model.ts';
import type {FindModel, KnownModel} from './known-model.ts';
import {translateMedium} from './media.ts';
import {translateOptions} from './options.ts';
import {translateMessages} from './translate-messages.ts';

export type Form = 'chat' | 'generate';

/** What an Ollama client wants from a model. */
export interface OllamaCall {
  /** `run` generates; `load` and `unload` are requests without anything to say. */
  readonly kind: 'run' | 'load' | 'unload';
  readonly form: Form;
  readonly model: KnownModel;
  readonly stream: boolean;
  /** Undefined: as the server likes. Infinity: for ever. */
  readonly keepAliveMs: number | undefined;
  readonly endpoint: Endpoint;
  readonly needs: readonly Capability[];
  /** For llama-server. */
  readonly body: JsonObject;
  /** A conversation that is too long may lose its oldest messages. */
  readonly mayShorten: boolean;
  /** The context that the client would like to have. */
  readonly contextTokens: number | undefined;
}

/**
 * Pure: a request to `/api/chat` or `/api/generate` as one to llama-server (facts: client-apis §1.3). One name may be
 * several models: what the first one lacks, another may have, which is then asked in its own way and by its digest.
 */
export function readRequest(body: JsonObject, form: Form, find: FindModel): OllamaCall | Problem {
  const model = modelOf(body, find);
  if (isProblem(model)) return model;
  const call = readFor(body, form, model);
  const problem = isProblem(call) ? undefined : lackOf(call);
  if (isProblem(call) || problem === undefined) return call;
  const other = find(model.asked, call.needs);
  if (other === undefined || cannot(other, call.needs)) return problem;
  const {digest} = other.report;
  const able = readFor(body, form, isProven(digest) ? {...other, target: digest} : other);
  return isProblem(able) ? able : (lackOf(able) ?? able);
}

/** Nothing is asked of a model that is only loaded or unloaded. */
function lackOf({kind, model, needs}: OllamaCall): Problem | undefined {
  return kind === 'run' ? cannot(model, needs) : undefined;
}

function readFor(body: JsonObject, form: Form, model: KnownModel): OllamaCall | Problem {
  const keepAlive = parseKeepAlive(body['keep_alive']);
  if (keepAlive.kind === 'bad') return badRequest(keepAlive.message, {param: 'keep_alive'});
  const settings = readSettings(body, model);
  if (isProblem(settings)) return settings;
  const wish = form === 'chat' ? readChat(body, model) : readGenerate(body, model);
  if (isProblem(wish)) return wish;
  const keepAliveMs = keepAlive.kind === 'given' ? keepAlive.ms : undefined;
  const kind = wish.isEmpty ? (keepAliveMs === 0 ? 'unload' : 'load') : 'run';
  return {
    kind,
    form,
    model,
    stream: body['stream'] !== false,
    keepAliveMs,
    endpoint: wish.endpoint,
    needs: [...wish.needs, ...settings.needs],
    body: {...wish.body, ...settings.fields, stream: true, cache_prompt: true},
    mayShorten: form === 'chat' && body['truncate'] !== false,
    contextTokens: settings.contextTokens,
  };
}

interface Wish {
  readonly kind: 'wish';
  readonly endpoint: Endpoint;
  readonly needs: readonly Capability[];
  readonly body: JsonObject;
  readonly isEmpty: boolean;
}

function readChat(body: JsonObject, {preset}: KnownModel): Wish | Problem {
  const given: unknown = body['messages'] ?? [];
  if (!Array.isArray(given)) return badRequest('messages is not a list', {param: 'messages'});
  const all: readonly unknown[] = [...(preset?.messages ?? []), ...given];
  const hasSystem = all.some(message => isObject(message) && message['role'] === 'system');
  const system = preset?.system ?? '';
  const translated = translateMessages(hasSystem || system === '' ? all : [{role: 'system', content: system}, ...all]);
  if (isProblem(translated)) return translated;
  const {tools} = body;
  const hasTools = Array.isArray(tools) && tools.length > 0;
  return {
    kind: 'wish',
    endpoint: '/v1/chat/completions',
    needs: ['chat', ...mediaNeeds(translated), ...(hasTools ? (['tools'] as const) : [])],
    body: {messages: translated.messages, ...(hasTools ? {tools} : {})},
    isEmpty: given.length === 0,
  };
}

function readGenerate(body: JsonObject, model: KnownModel): Wish | Problem {
  const {prompt = '', suffix = '', system = '', template = '', context, images, raw} = body;
  if (typeof prompt !== 'string') return badRequest('prompt is not text', {param: 'prompt'});
  if (raw === true && (template !== '' || system !== '' || isFilled(context))) {
    return badRequest('raw mode does not support template, system, or context', {param: 'raw'});
  }
  if (template !== '') {
    return badRequest("a template of the request's own is not supported: the model's is used", {param: 'template'});
  }
  const media: readonly unknown[] = Array.isArray(images) ? images : [];
  if (media.some(medium => translateMedium(medium) === undefined)) {
    return badRequest('an image is not base64', {param: 'images'});
  }
  if (media.length > 0 && (raw === true || (suffix ?? '') !== '')) {
    return badRequest('images are only possible without raw and suffix', {param: 'images'});
  }
  const isEmpty = prompt === '' && media.length === 0;
  const wish = {kind: 'wish', isEmpty} as const;
  if (typeof suffix === 'string' && suffix !== '') {
    const text = {input_prefix: prompt, input_suffix: suffix};
    return {...wish, endpoint: '/infill', needs: ['insert'], body: text, isEmpty: false};
  }
  if (raw === true || (media.length === 0 && !model.report.capabilities.includes('chat'))) {
    return {...wish, endpoint: '/v1/completions', needs: ['completion'], body: {prompt}};
  }
  const instruction = typeof system === 'string' && system !== '' ? system : (model.preset?.system ?? '');
  const translated = translateMessages([
    ...(instruction === '' ? [] : [{role: 'system', content: instruction}]),
    ...(model.preset?.messages ?? []),
    {role: 'user', content: prompt, images: media},
  ]);
  if (isProblem(translated)) return translated;
  const needs: readonly Capability[] = ['chat', ...mediaNeeds(translated)];
  return {...wish, endpoint: '/v1/chat/completions', needs, body: {messages: translated.messages}};
}

function mediaNeeds({hasImage, hasAudio}: {readonly hasImage: boolean; readonly hasAudio: boolean}): Capability[] {
  return [...(hasImage ? (['vision'] as const) : []), ...(hasAudio ? (['audio'] as const) : [])];
}

function isFilled(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

interface Settings {
  readonly kind: 'settings';
  readonly fields: JsonObject;
  readonly needs: readonly Capability[];
  readonly contextTokens: number | undefined;
}

/** Everything that does not depend on what is said. The client's options come before those of the preset. */
function readSettings(body: JsonObject, {preset, report, asked}: KnownModel): Settings | Problem {
  const {options} = body;
  if (options !== undefined && options !== null && !isObject(options)) {
    return badRequest('options is not an object', {param: 'options'});
  }
  const translated = translateOptions({...preset?.parameters, ...options}, report.contextMax);
  if (isProblem(translated)) return translated;
  const format = readFormat(body['format']);
  if (isProblem(format)) return format;
  const think = readThink(body['think'], asked);
  if (isProblem(think)) return think;
  const logprobs = readLogprobs(body);
  if (isProblem(logprobs)) return logprobs;
  const {fields, contextTokens} = translated;
  return {
    kind: 'settings',
    fields: {...fields, ...format.fields, ...think.fields, ...logprobs.fields},
    needs: think.wanted ? ['thinking'] : [],
    contextTokens,
  };
}

interface Fields {
  readonly kind: 'fields';
  readonly fields: JsonObject;
}

function readFormat(format: unknown): Fields | Problem {
  if (format === undefined || format === null || format === '') return {kind: 'fields', fields: {}};
  if (format === 'json') return {kind: 'fields', fields: {response_format: {type: 'json_object'}}};
  if (!isObject(format)) {
    const text = JSON.stringify(format).slice(0, 100);
    return badRequest(`invalid format: ${text}; expected "json" or a valid JSON Schema object`, {param: 'format'});
  }
  return {
    kind: 'fields',
    fields: {response_format: {type: 'json_schema', json_schema: {name: 'schema', schema: format}}},
  };
}

const efforts: ReadonlyMap<unknown, string> = new Map([
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['max', 'high'],
]);

function readThink(think: unknown, asked: string): (Fields & {readonly wanted: boolean}) | Problem {
  if (think === undefined || think === null) return {kind: 'fields', fields: {}, wanted: false};
  const effort = efforts.get(think);
  if (typeof think !== 'boolean' && effort === undefined) {
    const text = JSON.stringify(think).slice(0, 100);
    const must = 'must be "high", "medium", "low", "max", true, or false';
    return badRequest(`invalid think value for ${asked}: ${text} (${must})`, {param: 'think'});
  }
  const wanted = think !== false;
  const how = {enable_thinking: wanted, ...(effort === undefined ? {} : {reasoning_effort: effort})};
  return {kind: 'fields', fields: {chat_template_kwargs: how}, wanted};
}

/** As many as Ollama gives. */
const topLogprobsMax = 20;

function readLogprobs({logprobs, top_logprobs: top}: JsonObject): Fields | Problem {
  const count = typeof top === 'number' ? top : 0;
  if (count < 0 || count > topLogprobsMax || !Number.isInteger(count)) {
    return badRequest(`top_logprobs must be between 0 and ${topLogprobsMax}`, {param: 'top_logprobs'});
  }
  return {kind: 'fields', fields: logprobs === true ? {logprobs: true, top_logprobs: Math.max(1, count)} : {}};
}
