import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {Capability} from '@hearsay/core';
import test from 'ava';
import {bertContent} from '../../../scripts/tiny-models/bert-model.ts';
import {counterContent} from '../../../scripts/tiny-models/counter-model.ts';
import type {GgufContent} from '../../../scripts/tiny-models/gguf-writer.ts';
import {encodeGguf, encodeGgufShards} from '../../../scripts/tiny-models/gguf-writer.ts';
import {thinkContent, toolContent} from '../../../scripts/tiny-models/scripted-model.ts';
import {describeGguf, needBytes} from './describe-gguf.ts';
import type {GgufDescription} from './describe-gguf.ts';
import {readGguf} from './read-gguf.ts';
import type {GgufHeader} from './read-gguf.ts';

const folder = await mkdtemp(join(tmpdir(), 'hearsay-describe-'));
test.after.always(async () => {
  await rm(folder, {recursive: true});
});

let files = 0;

async function headerOf(bytes: Uint8Array): Promise<GgufHeader> {
  const path = join(folder, `${files++}.gguf`);
  await writeFile(path, bytes);
  return readGguf(path);
}

async function describe(content: GgufContent): Promise<GgufDescription> {
  return describeGguf([await headerOf(encodeGguf(content))]);
}

/** A header that no file of ours has, from the keys that matter. */
function header(metadata: Readonly<Record<string, string | number | boolean>>, classifier = false): GgufHeader {
  const lists = Object.entries(metadata).map(([key, value]) => [key, value] as const);
  const tensors = {count: 0, weightsBytes: 1_000_000, parameters: 0, hasClassifier: classifier};
  return {
    version: 3,
    metadata: new Map(lists),
    tensors: {
      ...tensors,
      bytesByType: new Map([
        [0, 10],
        [12, 900],
        [99, 5],
      ]),
    },
    hasInsertToken: false,
  };
}

test('a counter is described by its header', async t => {
  t.like(await describe(counterContent({name: 'Tiny Count', weights: 'Q8_0'})), {
    type: 'model',
    architecture: 'llama',
    name: 'Tiny Count',
    quant: 'Q8_0',
    parameters: 393_856,
    contextMax: 2048,
    layers: 2,
    embeddingLength: 128,
    vocabularySize: 768,
    kvBytesPerToken: 2 * 2 * (32 + 32) * 2,
    capabilities: ['chat', 'completion', 'insert'],
    shard: undefined,
  });
});

const capabilities: readonly (readonly [string, GgufContent, readonly Capability[]])[] = [
  ['a template that shows tools', toolContent(), ['chat', 'completion', 'tools']],
  ['a template that lets the model think', thinkContent(), ['chat', 'completion', 'thinking']],
  ['a model of vectors', bertContent('Embed', 'vectors'), ['embeddings']],
  ['a model that judges', bertContent('Rerank', 'scores'), ['rerank']],
];

for (const [what, content, expected] of capabilities) {
  test(`${what} can be asked for ${expected.join(', ')}`, async t => {
    t.deepEqual((await describe(content)).capabilities, expected);
  });
}

const guesses: readonly (readonly [string, GgufHeader, readonly Capability[]])[] = [
  ['no template', header({'general.architecture': 'llama'}), ['completion']],
  ['a chat model with pooling', embedder(), ['embeddings']],
  ['a reader with a classifier', header({'general.architecture': 'nomic-bert'}, true), ['rerank']],
  ['a reader without pooling', header({'general.architecture': 'modern-bert'}), ['embeddings']],
  ['a projector', header({'general.architecture': 'clip'}), []],
  ['a later shard alone', header({'split.no': 1, 'split.count': 2}), []],
  ['an adapter', header({'general.architecture': 'llama', 'general.type': 'adapter'}), []],
];

for (const [what, made, expected] of guesses) {
  test(`${what} can be asked for ${expected.join(', ') || 'nothing'}`, t => {
    t.deepEqual(describeGguf([made]).capabilities, expected);
  });
}

function embedder(): GgufHeader {
  const template = '{{ messages }} {{ tools }}';
  return header({'general.architecture': 'qwen3', 'qwen3.pooling_type': 3, 'tokenizer.chat_template': template});
}

test('R73: two shards are one model with the weights of both', async t => {
  const content = counterContent({name: 'Tiny Split'});
  const whole = await describe(content);
  const [first, ...rest] = await Promise.all(encodeGgufShards(content, 12).map(headerOf));
  if (!first) throw new Error('no shard was made');
  t.deepEqual(describeGguf([first, ...rest]), {...whole, shard: {index: 0, count: 2}});
  t.true(describeGguf([first]).weightsBytes < whole.weightsBytes);
});

test('without a recipe the quantization is what most bytes are', t => {
  t.is(describeGguf([header({'general.architecture': 'llama', 'general.file_type': 1000})]).quant, 'Q4_K');
});

/**
 * Dimensions of an 8B model; measured with llama-fit-params: 512 MiB of cache and 266 MiB of working memory at 4096.
 */
const eight = {
  'general.architecture': 'llama',
  'llama.block_count': 32,
  'llama.embedding_length': 4096,
  'llama.attention.head_count': 32,
  'llama.attention.head_count_kv': 8,
  'llama.vocab_size': 128_256,
};

test('the memory of an 8B model is what the engine measures', t => {
  const mebibyte = 1024 * 1024;
  const description = describeGguf([header(eight)]);
  t.is(description.kvBytesPerToken * 4096, 512 * mebibyte);
  const working = needBytes(description, 4096) - description.weightsBytes - (512 + 15) * mebibyte;
  t.true(Math.abs(working / mebibyte - 266) < 1, `${working}`);
});

test('the context is taken in steps of 256 tokens', t => {
  const description = describeGguf([header(eight)]);
  t.is(needBytes(description, 4000), needBytes(description, 4096));
  t.is(needBytes(description, 4097) - needBytes(description, 4096), 256 * description.kvBytesPerToken);
});

test('a mixed model keeps tokens only in its layers of full attention', t => {
  const mixed = describeGguf([header({...eight, 'llama.full_attention_interval': 4})]);
  t.is(mixed.kvBytesPerToken * 4, describeGguf([header(eight)]).kvBytesPerToken);
});

test('heads that differ from layer to layer are counted each', t => {
  const lengths = {'general.architecture': 'x', 'x.block_count': 3, 'x.attention.key_length': 10};
  const base = header({...lengths, 'x.attention.value_length': 10, 'x.attention.head_count': 8});
  const metadata = new Map([...base.metadata, ['x.attention.head_count_kv', {count: 3, items: [4, 0, 1]}] as const]);
  t.is(describeGguf([{...base, metadata}]).kvBytesPerToken, (4 + 0 + 1) * 20 * 2);
});

test('a name cannot move the cursor or fill the screen', t => {
  const {name} = describeGguf([header({'general.name': `\u001B[2J${'x'.repeat(1000)}`})]);
  t.is(name?.length, 200);
  t.false(/\p{C}/u.test(name ?? ''));
});

test('numbers that cannot be true mean nothing', t => {
  const broken = header({...eight, 'llama.block_count': Number.NaN, 'llama.context_length': -1});
  t.like(describeGguf([broken]), {layers: 0, contextMax: 0, kvBytesPerToken: 0});
});
