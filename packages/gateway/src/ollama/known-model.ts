import type {Capability, ModelReport} from '@hearsay/core';
import type {JsonObject} from '../json.ts';
import {badRequest, isProblem} from '../problem.ts';
import type {Problem} from '../problem.ts';
import {nameKey} from './model-name.ts';
import {translateOptions} from './options.ts';

/** What `create` and `copy` make: another name for a model, with things that are said and set beforehand. */
export interface Preset {
  /** As people wrote it. */
  readonly name: string;
  /** The model behind it, by a name that every node knows. */
  readonly from: string;
  readonly system: string;
  readonly parameters: JsonObject;
  readonly messages: readonly JsonObject[];
  readonly license: string;
  readonly madeWallMs: number;
  /** It comes from a store of models, as Ollama's own: its name is a model's, and nobody removes it here. */
  readonly isStored?: boolean;
  /** The store's, to be shown: llama-server uses the one in the file. */
  readonly template?: string | undefined;
}

/** What a name means: a model that some node has, perhaps through a preset. */
export interface KnownModel {
  readonly kind: 'known';
  /** As the client wrote it; answers echo it. */
  readonly asked: string;
  /** What the cluster is asked for. */
  readonly target: string;
  readonly report: ModelReport;
  readonly preset: Preset | undefined;
}

export interface FindModel {
  /** Of several models with one name, one that can do what is needed. */
  (asked: string, needs?: readonly Capability[]): KnownModel | undefined;
  /** Why a model of this node that is not found cannot be used; undefined when there is none of that name. */
  readonly whyNot?: (asked: string) => Problem | undefined;
}

/**
 * Pure: what the store of a model adds to it under this name. Parameters that mean nothing here are left out: nobody
 * who asks can mend them.
 */
export function storedPreset(
  asked: string,
  target: string,
  {presets = [], contextMax}: ModelReport,
): Preset | undefined {
  const key = nameKey(asked);
  const found = presets.find(({name}) => nameKey(name) === key);
  if (found === undefined) return undefined;
  const {name, system = '', template, parameters} = found;
  const usable = Object.entries(parameters).filter(
    ([option, value]) => !isProblem(translateOptions({[option]: value}, contextMax)),
  );
  return {
    name,
    from: target,
    system,
    template,
    parameters: Object.fromEntries(usable),
    messages: [],
    license: '',
    madeWallMs: 0,
    isStored: true,
  };
}

/** Pure: the model of a request; the texts are Ollama's, because clients search for them. */
export function modelOf(body: JsonObject, find: FindModel): KnownModel | Problem {
  const asked = body['model'] ?? body['name'];
  if (typeof asked !== 'string' || asked.trim() === '') return badRequest('model is required', {param: 'model'});
  return find(asked) ?? find.whyNot?.(asked) ?? notFound(asked);
}

function notFound(asked: string): Problem {
  return badRequest(`model '${asked.slice(0, 200)}' not found`, {
    status: 404,
    code: 'model_not_found',
    param: 'model',
  });
}

/** Pure: the first of these that the model cannot do, in Ollama's words. */
export function cannot({asked, report}: KnownModel, needs: readonly Capability[]): Problem | undefined {
  const missing = needs.find(need => !report.capabilities.includes(need));
  if (missing === undefined) return undefined;
  const [quote, what] = missing === 'tools' ? ['', 'tools'] : ['"', inOllamasWords.get(missing) ?? missing];
  return badRequest(`${quote}${asked}${quote} does not support ${what}`, {code: 'unsupported', param: 'model'});
}

const inOllamasWords: ReadonlyMap<Capability, string> = new Map([
  ['completion', 'generate'],
  ['embeddings', 'embeddings'],
]);
