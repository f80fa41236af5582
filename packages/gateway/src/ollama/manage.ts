import type {JsonObject} from '../json.ts';
import {isObject} from '../json.ts';
import {badRequest, isProblem} from '../problem.ts';
import type {Problem} from '../problem.ts';
import {modelOf} from './known-model.ts';
import type {FindModel, KnownModel, Preset} from './known-model.ts';
import {isModelName, nameKey, tagged} from './model-name.ts';
import {translateOptions} from './options.ts';

/** Lines that tell how a pull or a creation goes; the last one is `success`, or an error. */
export interface Progress {
  readonly kind: 'progress';
  readonly lines: readonly JsonObject[];
}

/** Pure: what `pull` says of a model that some node has already. Fetching others comes with the model stores. */
export function pullProgress(body: JsonObject, find: FindModel): Progress | Problem {
  const model = modelOf(body, find);
  if (isProblem(model)) return model.status === 404 ? cannotPull(body) : model;
  const {digest, sizeBytes} = model.report;
  const hash = digest.slice(digest.indexOf(':') + 1);
  return progress([
    {status: 'pulling manifest'},
    {status: `pulling ${hash.slice(0, 12)}`, digest: `sha256:${hash}`, total: sizeBytes, completed: sizeBytes},
    {status: 'verifying sha256 digest'},
    {status: 'writing manifest'},
    {status: 'success'},
  ]);
}

function cannotPull({model, name}: JsonObject): Problem {
  const asked = String(model ?? name).slice(0, 200);
  return badRequest(
    `pull model manifest: file does not exist: no node of the mesh has "${asked}", and hearsay does not fetch models ` +
      `through this API yet; put its GGUF file into a folder that models.folders names`,
    {status: 500, code: 'model_not_found', param: 'model'},
  );
}

export interface Creation {
  readonly kind: 'creation';
  readonly preset: Preset;
  readonly lines: readonly JsonObject[];
}

/** Pure: the preset that `create` makes: a model, by name or by the digest of its file, with things set beforehand. */
export function readCreation(body: JsonObject, find: FindModel, nowWallMs: number): Creation | Problem {
  const name = newName(body['model'] ?? body['name'], find);
  if (isProblem(name)) return name;
  const unsupported = complain(body);
  if (unsupported) return unsupported;
  const base = baseOf(body, find);
  if (isProblem(base)) return base;
  const {system, license, messages, parameters} = body;
  const own = isObject(parameters) ? parameters : {};
  const options = translateOptions(own, base.report.contextMax);
  if (isProblem(options)) return options;
  const given: readonly unknown[] = Array.isArray(messages) ? messages : [];
  const before = base.preset;
  const preset: Preset = {
    name: name.name,
    from: base.target,
    system: typeof system === 'string' ? system : (before?.system ?? ''),
    parameters: {...before?.parameters, ...own},
    messages: given.length > 0 ? given.filter(isObject) : (before?.messages ?? []),
    license: licenseText(license) || (before?.license ?? ''),
    madeWallMs: nowWallMs,
  };
  const lines = [
    {status: `using existing layer ${base.report.digest}`},
    {status: 'writing manifest'},
    {status: 'success'},
  ];
  return {kind: 'creation', preset, lines};
}

/** What would change the model itself; the answer says so instead of making something else. */
function complain({template, adapters, quantize}: JsonObject): Problem | undefined {
  if (isFilled(quantize)) return badRequest('quantization is not supported by this server; quantize the file before');
  if (isFilled(adapters)) return badRequest('adapters are not supported by this server; merge them into the file');
  if (isFilled(template)) return badRequest("templates are not supported by this server: the model file's own is used");
  return undefined;
}

function baseOf(body: JsonObject, find: FindModel): KnownModel | Problem {
  const {from, files} = body;
  if (typeof from === 'string' && from !== '') return find(from) ?? cannotPull({model: from});
  const given = isObject(files) ? Object.keys(files).length : 0;
  if (given === 0) return badRequest("neither 'from' or 'files' was specified");
  const file = modelFile(body);
  if (file === undefined) return badRequest('only one GGUF file can be made a model by this server');
  return (
    find(file.digest) ??
    badRequest(
      `no node of the mesh has a model with the digest of ${file.name}, or it is no model; ` +
        'upload it as a blob, or put it into a folder that models.folders names',
      {status: 404, code: 'model_not_found'},
    )
  );
}

/** Pure: the file that `create` is to make a model of, by its digest; undefined unless it is one GGUF file. */
export function modelFile({files}: JsonObject): {readonly name: string; readonly digest: string} | undefined {
  const [first, ...others] = isObject(files) ? Object.entries(files) : [];
  if (first === undefined || others.length > 0) return undefined;
  const [name, digest] = first;
  return name.toLowerCase().endsWith('.gguf') && typeof digest === 'string' ? {name, digest} : undefined;
}

/** Pure: the preset that `copy` makes. */
export function readCopy(body: JsonObject, find: FindModel, nowWallMs: number): Preset | Problem {
  const {source, destination} = body;
  if (typeof source !== 'string' || source === '') return badRequest('source is required', {param: 'source'});
  const name = newName(destination, find);
  if (isProblem(name)) return name;
  const model = find(source);
  if (model === undefined) {
    return badRequest(`model "${source.slice(0, 200)}" not found`, {status: 404, code: 'model_not_found'});
  }
  const {system = '', parameters = {}, messages = [], license = ''} = model.preset ?? {};
  return {name: name.name, from: model.target, system, parameters, messages, license, madeWallMs: nowWallMs};
}

/** Pure: what `delete` is about: a preset, because files of models are never touched. */
export function readDeletion(body: JsonObject, find: FindModel): Preset | Problem {
  const model = modelOf(body, find);
  if (isProblem(model)) return model;
  const {preset} = model;
  if (preset && preset.isStored !== true && nameKey(preset.name) === nameKey(model.asked)) return preset;
  const nodes = model.report.nodes.map(({name}) => name).join(', ');
  return badRequest(
    `hearsay does not delete files of models: remove the file of '${model.asked}' itself, on ${nodes || 'its node'}`,
    {status: 403, code: 'forbidden'},
  );
}

/** A name that no model of the mesh has: a preset must not hide one. */
function newName(value: unknown, find: FindModel): {readonly kind: 'name'; readonly name: string} | Problem {
  if (typeof value !== 'string' || value === '') return badRequest('model is required', {param: 'model'});
  if (!isModelName(value)) return badRequest('invalid model name', {param: 'model'});
  const there = find(value);
  if (there && (!there.preset || there.preset.isStored === true))
    return badRequest(`a model named '${value}' exists already; take another name`);
  return {kind: 'name', name: tagged(value)};
}

function licenseText(license: unknown): string {
  if (typeof license === 'string') return license;
  return Array.isArray(license) ? license.filter(each => typeof each === 'string').join('\n') : '';
}

function isFilled(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return false;
  return !isObject(value) || Object.keys(value).length > 0;
}

function progress(lines: readonly JsonObject[]): Progress {
  return {kind: 'progress', lines};
}
