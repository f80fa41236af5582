import type {CacheLayers, ModelShape} from '@hearsay/core';
import {numberAt, perLayer} from './gguf-values.ts';
import type {GgufHeader} from './read-gguf.ts';

/** Far above any network, so that a damaged number costs no time. */
const layersMax = 4096;

/** Architectures in which one layer of so many sees everything and the others a window; their headers do not tell. */
const windowPeriods: Readonly<Record<string, number>> = {
  gemma2: 2,
  gemma3: 6,
  'gpt-oss': 2,
  cohere2: 4,
  exaone4: 4,
  olmo2: 4,
};

/** Pure: what the headers of all shards of a model tell about the memory that it takes. */
export function modelShape(headers: readonly [GgufHeader, ...GgufHeader[]], architecture: string): ModelShape {
  const [first] = headers;
  const at = (key: string): number => numberAt(first, `${architecture}.${key}`) ?? 0;
  const total = (count: (header: GgufHeader) => number): number =>
    headers.reduce((sum, header) => sum + count(header), 0);
  const embeddingLength = at('embedding_length');
  const heads = perLayer(first, `${architecture}.attention.head_count`)?.(0) ?? 0;
  return {
    weightsBytes: total(({tensors}) => tensors.weightsBytes),
    copiedBytes: total(({tensors}) => tensors.copiedBytes),
    projectorBytes: 0,
    embeddingLength,
    feedForwardLength: perLayer(first, `${architecture}.feed_forward_length`)?.(0) ?? 0,
    queryLength: heads * (at('attention.key_length') || embeddingLength / Math.max(1, heads)),
    vocabularySize: vocabularySizeOf(first, architecture),
    caches: cachesOf(first, architecture),
    contextMax: at('context_length'),
  };
}

/** Heads may differ from layer to layer; in mixed models only every so many layers keep anything per token. */
function cachesOf(header: GgufHeader, architecture: string): readonly CacheLayers[] {
  if (header.metadata.get(`${architecture}.attention.causal`) === false) return [];
  const at = (key: string): string => `${architecture}.${key}`;
  const layers = Math.min(numberAt(header, at('block_count')) ?? 0, layersMax);
  const heads = perLayer(header, at('attention.head_count'));
  const headsKv = perLayer(header, at('attention.head_count_kv')) ?? heads;
  const embeddingLength = numberAt(header, at('embedding_length')) ?? 0;
  const interval = Math.max(1, numberAt(header, at('full_attention_interval')) ?? 1);
  const window = windowOf(header, architecture);
  const alike = new Map<string, CacheLayers>();
  for (let layer = 0; layer < layers; layer++) {
    if ((layer + 1) % interval !== 0) continue;
    const headLength = embeddingLength / Math.max(1, heads?.(layer) ?? 1);
    const keyLength = (headsKv?.(layer) ?? 0) * (numberAt(header, at('attention.key_length')) ?? headLength);
    const valueLength = (headsKv?.(layer) ?? 0) * (numberAt(header, at('attention.value_length')) ?? headLength);
    const windowTokens = window(layer);
    const key = `${keyLength} ${valueLength} ${windowTokens}`;
    alike.set(key, {keyLength, valueLength, windowTokens, layers: (alike.get(key)?.layers ?? 0) + 1});
  }
  return [...alike.values()];
}

/** Where the header does not tell which layers have the window, none has: that is never too little memory. */
function windowOf(header: GgufHeader, architecture: string): (layer: number) => number | undefined {
  const windowTokens = numberAt(header, `${architecture}.attention.sliding_window`);
  if (windowTokens === undefined || windowTokens === 0) return () => undefined;
  const pattern = header.metadata.get(`${architecture}.attention.sliding_window_pattern`);
  if (typeof pattern === 'object') return layer => (pattern.items?.[layer] === true ? windowTokens : undefined);
  const period = typeof pattern === 'number' ? pattern : windowPeriods[architecture];
  if (period === undefined || period < 1) return () => undefined;
  return layer => (layer % period < period - 1 ? windowTokens : undefined);
}

function vocabularySizeOf(header: GgufHeader, architecture: string): number {
  const tokens = header.metadata.get('tokenizer.ggml.tokens');
  return numberAt(header, `${architecture}.vocab_size`) ?? (typeof tokens === 'object' ? tokens.count : 0);
}
