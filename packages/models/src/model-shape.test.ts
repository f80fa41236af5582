import test from 'ava';
import {modelShape} from './model-shape.ts';
import type {GgufHeader} from './read-gguf.ts';

type Metadata = Readonly<Record<string, string | number | boolean | readonly (number | boolean)[]>>;

/** A header that no file of ours has, from the keys that matter. */
function header(metadata: Metadata, architecture = 'x'): GgufHeader {
  const entries = Object.entries(metadata).map(([key, value]) => {
    const kept = typeof value === 'object' ? {count: value.length, items: value} : value;
    return [`${architecture}.${key}`, kept] as const;
  });
  const tensors = {count: 0, weightsBytes: 1_000_000, copiedBytes: 5, parameters: 0, hasClassifier: false};
  return {version: 3, metadata: new Map(entries), tensors: {...tensors, bytesByType: new Map()}, hasInsertToken: false};
}

const shapeOf = (metadata: Metadata) => modelShape([header(metadata)], 'x');

const eight = {
  block_count: 32,
  embedding_length: 4096,
  feed_forward_length: 14_336,
  'attention.head_count': 32,
  'attention.head_count_kv': 8,
  vocab_size: 128_256,
};

test('an 8B header tells of the cache, of the widths and of the words', t => {
  t.like(shapeOf(eight), {
    caches: [{layers: 32, keyLength: 1024, valueLength: 1024, windowTokens: undefined}],
    embeddingLength: 4096,
    feedForwardLength: 14_336,
    queryLength: 4096,
    vocabularySize: 128_256,
  });
});

test('the weights of all shards count, and the widths of the first', t => {
  const both = modelShape([header(eight), header({})], 'x');
  t.like(both, {weightsBytes: 2_000_000, copiedBytes: 10, embeddingLength: 4096});
});

test('a mixed model keeps tokens only in its layers of full attention', t => {
  t.is(shapeOf({...eight, full_attention_interval: 4}).caches[0]?.layers, 8);
});

test('heads that differ from layer to layer are counted each', t => {
  const lengths = {block_count: 3, 'attention.key_length': 10, 'attention.value_length': 10};
  const {caches} = shapeOf({...lengths, 'attention.head_count': 8, 'attention.head_count_kv': [4, 0, 1]});
  const numbers = caches.map(cache => cache.layers * (cache.keyLength + cache.valueLength));
  t.is(
    numbers.reduce((sum, count) => sum + count, 0),
    (4 + 0 + 1) * 20,
  );
});

test('a model that does not look back keeps nothing', t => {
  t.deepEqual(shapeOf({...eight, 'attention.causal': false}).caches, []);
});

test('a window counts in the layers that the header names, or that the architecture is known for', t => {
  const window = {...eight, block_count: 6, 'attention.sliding_window': 1024};
  const inWindow = (metadata: Metadata, architecture = 'x'): number =>
    modelShape([header(metadata, architecture)], architecture)
      .caches.filter(({windowTokens}) => windowTokens === 1024)
      .reduce((sum, {layers}) => sum + layers, 0);
  t.is(inWindow({...window, 'attention.sliding_window_pattern': [true, true, false, true, true, false]}), 4);
  t.is(inWindow({...window, 'attention.sliding_window_pattern': 3}), 4);
  t.is(inWindow(window, 'gemma3'), 5);
  t.is(inWindow(window), 0, 'unknown: more memory than needed, never less');
});

test('numbers that cannot be true mean nothing', t => {
  const broken = {...eight, block_count: Number.NaN, context_length: -1};
  t.like(shapeOf(broken), {caches: [], contextMax: 0});
});
