import type {Capability, ModelShape} from '@hearsay/core';
import {nameLengthMax} from '@hearsay/core';
import {fileTypes, tensorTypes} from './gguf-types.ts';
import {numberAt} from './gguf-values.ts';
import {modelShape} from './model-shape.ts';
import type {GgufHeader} from './read-gguf.ts';

/** What the headers of one model say, in our words. */
export interface GgufDescription {
  /** `model`, or a part of one that cannot run alone: `mmproj` (projector), `adapter`, `imatrix`. */
  readonly type: string;
  /** `unknown` for later shards, which do not tell. */
  readonly architecture: string;
  /** Free text by whoever made the file; not a name to ask for. */
  readonly name: string | undefined;
  /** As people write it, for example `Q4_K_M`. */
  readonly quant: string;
  readonly parameters: number;
  /** The context it was trained for; 0 when it does not say. */
  readonly contextMax: number;
  /** What it takes in memory. */
  readonly shape: ModelShape;
  readonly chatTemplate: string | undefined;
  readonly capabilities: readonly Capability[];
  /** Which part of a split model the first header is, counted from 0; undefined when the model is one file. */
  readonly shard: {readonly index: number; readonly count: number} | undefined;
}

/** Architectures that only read: they have no next token to predict. */
const readerArchitectures = /bert|^t5encoder$|^gemma-embedding$/u;

/**
 * Kinds of projectors whose images may be larger than what llama-server reads in one step by itself, and of which every
 * part sees every other: it ends with a failed assertion when one does not fit (ggml-org/llama.cpp#23409).
 */
const wholeImageProjectors: ReadonlySet<string> = new Set(['gemma4v', 'gemma4uv']);

/** What `…pooling_type` says when the model judges how well texts fit together. */
const poolingRank = 4;

/** How a chat template shows that the model thinks before it answers. */
const thinkingMarks = /<\/?think(?:ing)?>|enable_thinking|reasoning_effort|<\|channel\|>analysis/u;

/** Pure: one model from the headers of all its shards, the first one first; later ones add only their tensors. */
export function describeGguf(headers: readonly [GgufHeader, ...GgufHeader[]]): GgufDescription {
  const [first] = headers;
  const architecture = textAt(first, 'general.architecture') ?? 'unknown';
  const chatTemplate = textAt(first, 'tokenizer.chat_template');
  return {
    type: typeOf(first, architecture),
    architecture,
    name: textAt(first, 'general.name'),
    quant: quantOf(headers),
    parameters: sum(headers.map(header => header.tensors.parameters)),
    contextMax: numberAt(first, `${architecture}.context_length`) ?? 0,
    shape: modelShape(headers, architecture),
    chatTemplate,
    capabilities: capabilitiesOf(headers, architecture, chatTemplate),
    shard: shardOf(first),
  };
}

/** Pure: a model together with its projector, which adds what it can take in and its own weights. */
export function withProjector(model: GgufDescription, projector: GgufHeader): GgufDescription {
  const [sight, hearing] = ['vision', 'audio'].map(sense => projector.metadata.get(`clip.has_${sense}_encoder`));
  const sees = sight === true || (sight === undefined && hearing !== true);
  const chats = model.capabilities.includes('chat') || model.capabilities.includes('completion');
  const senses: Capability[] = [];
  if (sees) senses.push('vision');
  if (hearing === true) senses.push('audio');
  return {
    ...model,
    shape: {
      ...model.shape,
      projectorBytes: model.shape.projectorBytes + projector.tensors.weightsBytes,
      wholeImages: wholeImageProjectors.has(projectorType(projector)),
    },
    capabilities: chats ? [...model.capabilities, ...senses] : model.capabilities,
  };
}

function projectorType(projector: GgufHeader): string {
  return textAt(projector, 'clip.vision.projector_type') ?? textAt(projector, 'clip.projector_type') ?? '';
}

/** Old projectors do not say that they are one, but their architecture does. */
function typeOf(header: GgufHeader, architecture: string): string {
  return architecture === 'clip' ? 'mmproj' : (textAt(header, 'general.type') ?? 'model');
}

/** The recipe when the file names one that we know, else what most of its bytes are. */
function quantOf(headers: readonly [GgufHeader, ...GgufHeader[]]): string {
  const recipe = fileTypes.get(numberAt(headers[0], 'general.file_type') ?? -1);
  if (recipe !== undefined) return recipe;
  const bytesByType = new Map<number, number>();
  for (const [type, bytes] of headers.flatMap(header => [...header.tensors.bytesByType])) {
    bytesByType.set(type, (bytesByType.get(type) ?? 0) + bytes);
  }
  const [largest] = [...bytesByType].toSorted(([, a], [, b]) => b - a);
  return (largest && tensorTypes.get(largest[0])?.name) ?? 'unknown';
}

function capabilitiesOf(
  headers: readonly [GgufHeader, ...GgufHeader[]],
  architecture: string,
  chatTemplate: string | undefined,
): readonly Capability[] {
  const [first] = headers;
  const pooling = numberAt(first, `${architecture}.pooling_type`) ?? 0;
  const isReader = readerArchitectures.test(architecture);
  const judges = pooling === poolingRank || (isReader && headers.some(header => header.tensors.hasClassifier));
  if (judges) return ['rerank'];
  if (pooling > 0 || isReader) return ['embeddings'];
  if (typeOf(first, architecture) !== 'model' || architecture === 'unknown') return [];
  const capabilities: Capability[] = ['completion'];
  if (chatTemplate !== undefined) capabilities.unshift('chat');
  if (/\btools\b/u.test(chatTemplate ?? '') || textAt(first, 'tokenizer.chat_template.tool_use')) {
    capabilities.push('tools');
  }
  if (letsThink(chatTemplate ?? '')) capabilities.push('thinking');
  if (first.hasInsertToken || first.metadata.has('tokenizer.ggml.fim_pre_token_id')) capabilities.push('insert');
  return capabilities;
}

/** Pure: whether a chat template asks for thoughts, or keeps them apart from the answer. */
export function letsThink(chatTemplate: string): boolean {
  return thinkingMarks.test(chatTemplate);
}

function shardOf(header: GgufHeader): GgufDescription['shard'] {
  const [index, count] = [numberAt(header, 'split.no'), numberAt(header, 'split.count')];
  return index !== undefined && count !== undefined && count > 1 ? {index, count} : undefined;
}

/**
 * Text from outside: what people see of it is cut, and cannot move their cursor. Chat templates are only for machines.
 */
function textAt({metadata}: GgufHeader, key: string): string | undefined {
  const value = metadata.get(key);
  if (typeof value !== 'string' || value === '') return undefined;
  return key.startsWith('tokenizer.') ? value : value.replaceAll(/\p{C}+/gu, ' ').slice(0, nameLengthMax);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
