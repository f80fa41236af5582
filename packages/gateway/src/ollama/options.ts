import type {JsonObject} from '../json.ts';
import {badRequest} from '../problem.ts';
import type {Problem} from '../problem.ts';

/** Options as llama-server takes them. */
export interface TranslatedOptions {
  readonly kind: 'options';
  readonly fields: JsonObject;
  /** `num_ctx`: the context that the client would like to have. */
  readonly contextTokens: number | undefined;
}

type OptionType = 'integer' | 'float32' | 'boolean' | 'array';

/** What each option must be; all others are ignored, as Ollama does. Without a field it means nothing at this point. */
const known: ReadonlyMap<string, {readonly type: OptionType; readonly field?: string}> = new Map([
  ['num_predict', {type: 'integer', field: 'n_predict'}],
  ['num_keep', {type: 'integer', field: 'n_keep'}],
  ['seed', {type: 'integer', field: 'seed'}],
  ['top_k', {type: 'integer', field: 'top_k'}],
  ['repeat_last_n', {type: 'integer', field: 'repeat_last_n'}],
  ['mirostat', {type: 'integer', field: 'mirostat'}],
  ['temperature', {type: 'float32', field: 'temperature'}],
  ['top_p', {type: 'float32', field: 'top_p'}],
  ['min_p', {type: 'float32', field: 'min_p'}],
  ['typical_p', {type: 'float32', field: 'typical_p'}],
  ['repeat_penalty', {type: 'float32', field: 'repeat_penalty'}],
  ['presence_penalty', {type: 'float32', field: 'presence_penalty'}],
  ['frequency_penalty', {type: 'float32', field: 'frequency_penalty'}],
  ['mirostat_tau', {type: 'float32', field: 'mirostat_tau'}],
  ['mirostat_eta', {type: 'float32', field: 'mirostat_eta'}],
  ['stop', {type: 'array', field: 'stop'}],
  ['num_ctx', {type: 'integer'}],
  ['num_batch', {type: 'integer'}],
  ['num_gpu', {type: 'integer'}],
  ['main_gpu', {type: 'integer'}],
  ['num_thread', {type: 'integer'}],
  ['use_mmap', {type: 'boolean'}],
] as const);

/** Most stop words of one request; each is searched for in every piece of the answer. */
const stopWordsMax = 64;

/**
 * Pure: only what the client set is sent, so that the defaults are the model's own. Values that Ollama knows and
 * llama-server refuses become what they mean (facts: client-apis §1.3); `contextMax` is the model's.
 */
export function translateOptions(options: JsonObject, contextMax: number): TranslatedOptions | Problem {
  const fields: Record<string, unknown> = {};
  let contextTokens: number | undefined;
  for (const [name, value] of Object.entries(options)) {
    const option = known.get(name);
    if (option === undefined || value === null || value === undefined) continue;
    const read = readOption(value, option.type);
    if (read === undefined) return badRequest(`option "${name}" must be of type ${option.type}`, {param: name});
    if (name === 'num_ctx' && typeof read === 'number' && read > 0) contextTokens = read;
    if (option.field !== undefined) fields[option.field] = read;
  }
  return {kind: 'options', fields: accepted(fields, contextTokens ?? contextMax), contextTokens};
}

function readOption(value: unknown, type: OptionType): unknown {
  switch (type) {
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined;
    case 'array':
      return readWords(value);
    case 'integer':
      return typeof value === 'number' && Number.isFinite(value) ? Math.trunc(value) : undefined;
    case 'float32':
      return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
  }
}

/** One word is taken for a list of one. An empty word would stop every answer at once. */
function readWords(value: unknown): readonly string[] | undefined {
  const words: readonly unknown[] = typeof value === 'string' ? [value] : Array.isArray(value) ? value : [false];
  if (!words.every(word => typeof word === 'string') || words.length > stopWordsMax) return undefined;
  return words.filter(word => word !== '');
}

/** -1 is "the whole context" to Ollama, and -2 "fill the context"; llama-server's answers end there anyway. */
function accepted(fields: Readonly<Record<string, unknown>>, contextTokens: number): JsonObject {
  const {n_predict: predict, repeat_last_n: lastN, n_keep: keep, ...others} = fields;
  return {
    ...others,
    ...(typeof predict === 'number' && predict >= 0 ? {n_predict: predict} : {}),
    ...(typeof lastN === 'number' ? {repeat_last_n: lastN < 0 ? contextTokens : lastN} : {}),
    ...(typeof keep === 'number' ? {n_keep: Math.max(-1, keep)} : {}),
  };
}
