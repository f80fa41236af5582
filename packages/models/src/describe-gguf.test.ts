import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {Capability} from '@hearsay/core';
import test from 'ava';
import {bertContent} from '../../../scripts/tiny-models/bert-model.ts';
import {counterContent} from '../../../scripts/tiny-models/counter-model.ts';
import type {GgufContent} from '../../../scripts/tiny-models/gguf-writer.ts';
import {encodeGguf, encodeGgufShards} from '../../../scripts/tiny-models/gguf-writer.ts';
import {projectorContent} from '../../../scripts/tiny-models/projector.ts';
import {thinkContent, toolContent} from '../../../scripts/tiny-models/scripted-model.ts';
import {describeGguf, withProjector} from './describe-gguf.ts';
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
  const tensors = {count: 0, weightsBytes: 1_000_000, copiedBytes: 0, parameters: 0, hasClassifier: classifier};
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
  t.true(describeGguf([first]).shape.weightsBytes < whole.shape.weightsBytes);
});

test('without a recipe the quantization is what most bytes are', t => {
  t.is(describeGguf([header({'general.architecture': 'llama', 'general.file_type': 1000})]).quant, 'Q4_K');
});

test('a name cannot move the cursor or fill the screen', t => {
  const {name} = describeGguf([header({'general.name': `\u001B[2J${'x'.repeat(1000)}`})]);
  t.is(name?.length, 200);
  t.false(/\p{C}/u.test(name ?? ''));
});

test('a projector adds the sense that it is for, its weights, and whether an image must be read in one step', async t => {
  const counter = await describe(counterContent({name: 'Tiny Count'}));
  const together = async (sense: 'sight' | 'hearing'): Promise<GgufDescription> =>
    withProjector(counter, await headerOf(encodeGguf(projectorContent('x', sense))));
  const [seeing, hearing] = [await together('sight'), await together('hearing')];
  t.deepEqual(seeing.capabilities, [...counter.capabilities, 'vision']);
  t.deepEqual(hearing.capabilities, [...counter.capabilities, 'audio']);
  t.true(hearing.shape.projectorBytes > 100_000);
  t.true(seeing.shape.wholeImages);
  t.false(hearing.shape.wholeImages);
  const older = {'general.architecture': 'clip', 'clip.has_vision_encoder': true};
  t.true(withProjector(counter, header({...older, 'clip.projector_type': 'gemma4v'})).shape.wholeImages);
  t.false(withProjector(counter, header({...older, 'clip.projector_type': 'qwen2vl_merger'})).shape.wholeImages);
});
