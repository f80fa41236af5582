import type {Capability} from '@hearsay/core';
import {nameLengthMax} from '@hearsay/core';
import {fileTypes, tensorTypes} from './gguf-types.ts';
import type {GgufHeader, GgufScalar} from './read-gguf.ts';

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
  readonly weightsBytes: number;
  /** The context it was trained for; 0 when it does not say. */
  readonly contextMax: number;
  readonly layers: number;
  readonly embeddingLength: number;
  readonly vocabularySize: number;
  /** At half precision, for one token in all layers. More than needed where a layer looks back over a window only. */
  readonly kvBytesPerToken: number;
  readonly chatTemplate: string | undefined;
  readonly capabilities: readonly Capability[];
  /** Which part of a split model the first header is, counted from 0; undefined when the model is one file. */
  readonly shard: {readonly index: number; readonly count: number} | undefined;
}

/** Architectures that only read: they have no next token to predict. */
const readerArchitectures = /bert|^t5encoder$|^gemma-embedding$/u;

/** What `…pooling_type` says when the model judges how well texts fit together. */
const poolingRank = 4;

/** How a chat template shows that the model thinks before it answers. */
const thinkingMarks = /<\/?think(?:ing)?>|enable_thinking|reasoning_effort|<\|channel\|>analysis/u;

/** The engine reads prompts in batches of 512 tokens unless told otherwise; its working memory grows with that. */
const batchTokens = 512;

/** Context is taken in steps of this. */
const contextStepTokens = 256;

/** What an idle engine takes beside weights, cache and working memory. */
const processBytes = 15 * 1024 * 1024;

/** Pure: one model from the headers of all its shards, the first one first; later ones add only their tensors. */
export function describeGguf(headers: readonly [GgufHeader, ...GgufHeader[]]): GgufDescription {
  const [first] = headers;
  const architecture = textAt(first, 'general.architecture') ?? 'unknown';
  const layers = numberAt(first, `${architecture}.block_count`) ?? 0;
  const chatTemplate = textAt(first, 'tokenizer.chat_template');
  return {
    type: typeOf(first, architecture),
    architecture,
    name: textAt(first, 'general.name'),
    quant: quantOf(headers),
    parameters: sum(headers.map(header => header.tensors.parameters)),
    weightsBytes: sum(headers.map(header => header.tensors.weightsBytes)),
    contextMax: numberAt(first, `${architecture}.context_length`) ?? 0,
    layers,
    embeddingLength: numberAt(first, `${architecture}.embedding_length`) ?? 0,
    vocabularySize: vocabularySizeOf(first, architecture),
    kvBytesPerToken: kvBytesPerToken(first, architecture, layers),
    chatTemplate,
    capabilities: capabilitiesOf(headers, architecture, chatTemplate),
    shard: shardOf(first),
  };
}

/**
 * What an engine needs to run the model with a context of so many tokens: weights, cache, working memory and the
 * process. Measured to be within a few per cent; on a CPU some quantizations take up to 0.7 of the weights again for a
 * copy that runs faster.
 */
export function needBytes(description: GgufDescription, contextTokens: number): number {
  const {weightsBytes, kvBytesPerToken: perToken, vocabularySize, embeddingLength} = description;
  const cacheBytes = perToken * Math.ceil(contextTokens / contextStepTokens) * contextStepTokens;
  return weightsBytes + cacheBytes + batchTokens * 4 * (vocabularySize + 2 * embeddingLength) + processBytes;
}

/** Pure: a model together with its projector, which adds what it can take in and its own weights. */
export function withProjector(model: GgufDescription, projector: GgufHeader): GgufDescription {
  const [sight, hearing] = ['vision', 'audio'].map(sense => projector.metadata.get(`clip.has_${sense}_encoder`));
  const sees = sight === true || (sight === undefined && hearing !== true);
  const chats = model.capabilities.includes('chat') || model.capabilities.includes('completion');
  return {
    ...model,
    weightsBytes: model.weightsBytes + projector.tensors.weightsBytes,
    capabilities: sees && chats ? [...model.capabilities, 'vision'] : model.capabilities,
  };
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

function vocabularySizeOf(header: GgufHeader, architecture: string): number {
  const tokens = header.metadata.get('tokenizer.ggml.tokens');
  return numberAt(header, `${architecture}.vocab_size`) ?? (typeof tokens === 'object' ? tokens.count : 0);
}

/** Heads may differ from layer to layer; in mixed models only every so many layers keep anything per token. */
function kvBytesPerToken(header: GgufHeader, architecture: string, layers: number): number {
  if (header.metadata.get(`${architecture}.attention.causal`) === false) return 0;
  const at = (key: string): string => `${architecture}.${key}`;
  const heads = perLayer(header, at('attention.head_count'));
  const headsKv = perLayer(header, at('attention.head_count_kv')) ?? heads;
  const embeddingLength = numberAt(header, at('embedding_length')) ?? 0;
  const interval = Math.max(1, numberAt(header, at('full_attention_interval')) ?? 1);
  let values = 0;
  for (let layer = 0; layer < Math.min(layers, layersMax); layer++) {
    if ((layer + 1) % interval !== 0) continue;
    const headLength = embeddingLength / Math.max(1, heads?.(layer) ?? 1);
    const keyLength = numberAt(header, at('attention.key_length')) ?? headLength;
    const valueLength = numberAt(header, at('attention.value_length')) ?? headLength;
    values += (headsKv?.(layer) ?? 0) * (keyLength + valueLength);
  }
  return values * 2;
}

/** Far above any network, so that a damaged number costs no time. */
const layersMax = 4096;

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
  if (thinkingMarks.test(chatTemplate ?? '')) capabilities.push('thinking');
  if (first.hasInsertToken || first.metadata.has('tokenizer.ggml.fim_pre_token_id')) capabilities.push('insert');
  return capabilities;
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

function numberAt({metadata}: GgufHeader, key: string): number | undefined {
  return toCount(metadata.get(key));
}

/** A number that is the same in all layers, or one for each. */
function perLayer({metadata}: GgufHeader, key: string): ((layer: number) => number) | undefined {
  const value = metadata.get(key);
  if (typeof value === 'object') return layer => toCount(value.items?.[layer]) ?? 0;
  const same = toCount(value);
  return same === undefined ? undefined : () => same;
}

/** Sizes and counts are finite and not negative; anything else in a header means nothing. */
function toCount(value: GgufScalar | object | undefined): number | undefined {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : undefined;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
