import type {Capability, EngineReport, ModelReport, NodeReport} from '@hearsay/core';
import type {JsonObject} from '../json.ts';
import type {KnownModel, Preset} from './known-model.ts';
import {tagged} from './model-name.ts';

/** Bare and recent, because clients compare it with what they need (C61). */
export const ollamaVersion: string = '0.31.1';

/** As Ollama writes "for ever": no client may be told a time that it takes for past. */
const foreverWallMs = Date.UTC(2318, 0, 1);

/** Pure: `/api/tags`, newest first. Lists what some node can run, loaded or not (S54). */
export function listTags(
  models: readonly ModelReport[],
  presets: readonly Preset[],
  find: (name: string) => KnownModel | undefined,
  startedWallMs: number,
): JsonObject {
  const own = models
    .filter(({problem}) => problem === undefined)
    .map(report => entry(report.name, report, startedWallMs));
  const made = presets.flatMap(({name, madeWallMs}) => {
    const report = find(name)?.report;
    return report ? [entry(name, report, madeWallMs)] : [];
  });
  return {models: [...made.toReversed(), ...own]};
}

function entry(name: string, report: ModelReport, modifiedWallMs: number): JsonObject {
  return {
    name: tagged(name),
    model: tagged(name),
    ...factsOf(report, modifiedWallMs),
    nodes: report.nodes.map(({name: node}) => node),
  };
}

/** Pure: what lists in Ollama's form say of a model besides its name. */
export function factsOf(
  report: ModelReport,
  modifiedWallMs: number,
): JsonObject & {readonly capabilities: readonly string[]} {
  return {
    modified_at: new Date(modifiedWallMs).toISOString(),
    size: report.sizeBytes,
    digest: digestText(report),
    details: detailsOf(report),
    capabilities: capabilitiesOf(report),
  };
}

/** Pure: `/api/ps`, one entry a model over all nodes, longest remaining first. */
export function listRunning(
  engines: readonly EngineReport[],
  models: readonly ModelReport[],
  nodes: readonly NodeReport[],
  nowWallMs: number,
): JsonObject {
  const loaded = engines.filter(({state}) => state === 'ready');
  const running = [...Map.groupBy(loaded, ({digest}) => digest)].flatMap(([digest, here]) => {
    const report = models.find(model => model.digest === digest);
    return report ? [{report, here, untilMs: Math.max(...here.map(engine => untilWallMs(engine, nowWallMs)))}] : [];
  });
  const listed = running
    .toSorted((a, b) => b.untilMs - a.untilMs)
    .map(({report, here, untilMs}) => ({
      name: tagged(report.name),
      model: tagged(report.name),
      size: report.sizeBytes,
      digest: digestText(report),
      details: detailsOf(report),
      expires_at: new Date(untilMs).toISOString(),
      size_vram: here.some(engine => isOnDevice(engine, nodes)) ? report.sizeBytes : 0,
      context_length: Math.max(...here.map(({context}) => context)),
      nodes: here.map(({nodeName}) => nodeName),
    }));
  return {models: listed};
}

function untilWallMs({untilSeconds, busy}: EngineReport, nowWallMs: number): number {
  if (untilSeconds !== undefined && Number.isFinite(untilSeconds)) return nowWallMs + untilSeconds * 1000;
  return busy > 0 ? nowWallMs + busyMs : foreverWallMs;
}

/** What an engine that works now is said to have left: its time begins when it has nothing to do. */
const busyMs = 300_000;

function isOnDevice({nodeId}: EngineReport, nodes: readonly NodeReport[]): boolean {
  return nodes.some(({id, memoryKind}) => id === nodeId && memoryKind === 'device');
}

/** Pure: `/api/show`. The context is what one request really gets, where the model is loaded (C61). */
export function showModel(
  {report, preset, asked}: KnownModel,
  context: number,
  {modifiedWallMs, isCopilot}: {readonly modifiedWallMs: number; readonly isCopilot: boolean},
): JsonObject {
  const arch = report.architecture;
  const canInsert = report.capabilities.includes('insert');
  return {
    ...(preset && preset.license !== '' ? {license: preset.license} : {}),
    modelfile: modelfile(report, preset),
    parameters: parametersText({num_ctx: context, ...preset?.parameters}),
    template: preset?.template ?? (canInsert ? '{{ .Prompt }}{{ .Suffix }}' : '{{ .Prompt }}'),
    ...(preset && preset.system !== '' ? {system: preset.system} : {}),
    ...(preset && preset.messages.length > 0 ? {messages: preset.messages} : {}),
    details: detailsOf(report),
    model_info: {
      'general.architecture': arch,
      'general.basename': isCopilot ? asked : report.name,
      'general.file_type': fileTypes.get(report.quant.toUpperCase()) ?? 0,
      'general.parameter_count': report.parameters,
      [`${arch}.context_length`]: context,
      'tokenizer.ggml.tokens': null,
    },
    tensors: [],
    capabilities: capabilitiesOf(report),
    modified_at: new Date(modifiedWallMs).toISOString(),
    nodes: report.nodes.map(({name}) => name),
  };
}

function modelfile(report: ModelReport, preset: Preset | undefined): string {
  const lines = Object.entries(preset?.parameters ?? {}).flatMap(([name, value]) =>
    valuesOf(value).map(each => `PARAMETER ${name} ${each}`),
  );
  const system = preset && preset.system !== '' ? [`SYSTEM ${JSON.stringify(preset.system)}`] : [];
  return [`FROM ${tagged(report.name)}`, ...system, ...lines, ''].join('\n');
}

/** One `name value` a line, as clients take it apart; texts in quotes. */
function parametersText(parameters: JsonObject): string {
  return Object.entries(parameters)
    .flatMap(([name, value]) => valuesOf(value).map(each => `${name.padEnd(30)} ${each}`))
    .join('\n');
}

function valuesOf(value: unknown): readonly string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.map(each => JSON.stringify(each) ?? '');
}

function detailsOf({architecture, parameters, quant, contextMax}: ModelReport): JsonObject {
  return {
    parent_model: '',
    format: 'gguf',
    family: architecture,
    families: [architecture],
    parameter_size: parameterSize(parameters),
    quantization_level: quant,
    context_length: contextMax,
  };
}

/** As Ollama writes it: `7.6B`, `394K`. */
function parameterSize(parameters: number): string {
  if (parameters >= 1e9) return `${(parameters / 1e9).toFixed(1)}B`;
  if (parameters >= 1e6) return `${(parameters / 1e6).toFixed(parameters < 1e7 ? 1 : 0)}M`;
  return parameters >= 1e3 ? `${Math.round(parameters / 1e3)}K` : String(parameters);
}

const capabilityWords: ReadonlyMap<Capability, string> = new Map([
  ['chat', 'completion'],
  ['completion', 'completion'],
  ['embeddings', 'embedding'],
]);

function capabilitiesOf({capabilities}: ModelReport): readonly string[] {
  return [...new Set(capabilities.map(each => capabilityWords.get(each) ?? each))];
}

/** 64 hex digits and no prefix, because clients cut it to show its beginning. */
function digestText({digest}: ModelReport): string {
  return digest.slice(digest.indexOf(':') + 1).padEnd(12, '0');
}

/** llama.cpp's numbers of the usual quantizations. */
const fileTypes: ReadonlyMap<string, number> = new Map([
  ['F32', 0],
  ['F16', 1],
  ['Q4_0', 2],
  ['Q4_1', 3],
  ['Q8_0', 7],
  ['Q5_0', 8],
  ['Q5_1', 9],
  ['Q2_K', 10],
  ['Q3_K_S', 11],
  ['Q3_K_M', 12],
  ['Q3_K_L', 13],
  ['Q4_K_S', 14],
  ['Q4_K_M', 15],
  ['Q5_K_S', 16],
  ['Q5_K_M', 17],
  ['Q6_K', 18],
  ['IQ4_NL', 25],
  ['IQ4_XS', 30],
  ['BF16', 32],
]);
