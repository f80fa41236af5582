import test from 'ava';
import type {EngineSize, ModelShape, SizeWish} from './fit.ts';
import {estimateFit, fullSize, leastSize, noWish, sizeEngine} from './fit.ts';

const mebibyte = 1024 * 1024;
const onRam = {place: 'ram', keyType: 'f16', valueType: 'f16'} as const;

function shape(layers: number, width: number, feedForward: number, keyLength: number, words: number): ModelShape {
  return {
    weightsBytes: 0,
    copiedBytes: 0,
    projectorBytes: 0,
    embeddingLength: width,
    feedForwardLength: feedForward,
    queryLength: width,
    vocabularySize: words,
    caches: [{layers, keyLength, valueLength: keyLength, windowTokens: undefined}],
    contextMax: 131_072,
  };
}

const shapes = {
  '1B': shape(16, 2048, 8192, 8 * 64, 128_256),
  '8B': shape(32, 4096, 14_336, 8 * 128, 128_256),
  '70B': shape(80, 8192, 28_672, 8 * 128, 128_256),
  TinyLlama: shape(22, 2048, 5632, 4 * 64, 32_000),
};

/** What llama-fit-params says of headers with these sizes: cache and working memory in MiB. */
const recorded: readonly (readonly [keyof typeof shapes, number, number, number])[] = [
  ['1B', 4096, 128, 258],
  ['8B', 4096, 512, 266],
  ['70B', 4096, 1280, 282],
  ['TinyLlama', 4096, 88, 70],
  ['1B', 131_072, 4096, 258],
  ['8B', 131_072, 16_384, 266],
  ['70B', 131_072, 40_960, 360],
  ['TinyLlama', 131_072, 2816, 177],
];

for (const [name, context, cache, compute] of recorded) {
  test(`a ${name} model with a context of ${context} takes what llama.cpp measures, within 2 per cent`, t => {
    const fit = estimateFit(shapes[name], {slots: 1, context}, onRam);
    t.is(fit.cacheBytes / mebibyte, cache);
    t.true(Math.abs(fit.computeBytes / mebibyte / compute - 1) < 0.02, `${fit.computeBytes / mebibyte} for ${compute}`);
  });
}

test('the parts add up, and what a place does not need is not counted there', t => {
  const model = {...shapes['8B'], weightsBytes: 5000, copiedBytes: 3000, projectorBytes: 700};
  for (const place of ['ram', 'device'] as const) {
    const {totalBytes, ...parts} = estimateFit(model, {slots: 2, context: 1000}, {...onRam, place});
    t.is(
      totalBytes,
      Object.values(parts).reduce((sum, bytes) => sum + bytes, 0),
    );
    t.is(parts.copyBytes, place === 'ram' ? 3000 : 0);
    t.is(parts.projectorBytes, 700);
  }
});

test('every slot has a cache of its own, in steps of 256 tokens', t => {
  const cache = (slots: number, context: number) => estimateFit(shapes['8B'], {slots, context}, onRam).cacheBytes;
  t.is(cache(4, 1024), 4 * cache(1, 1024));
  t.is(cache(1, 1000), cache(1, 1024));
  t.is(cache(1, 1025), cache(1, 1280));
});

test('a smaller type of cache takes less: q8_0 about 53 per cent', t => {
  const full = estimateFit(shapes['8B'], {slots: 1, context: 4096}, onRam).cacheBytes;
  const small = estimateFit(shapes['8B'], {slots: 1, context: 4096}, {...onRam, keyType: 'q8_0', valueType: 'q8_0'});
  t.is(small.cacheBytes / full, 34 / 64);
});

test('layers that look back over a window keep the window and one batch, not the context', t => {
  const caches = [
    {layers: 5, keyLength: 1024, valueLength: 1024, windowTokens: 1024},
    {layers: 1, keyLength: 1024, valueLength: 1024, windowTokens: undefined},
  ];
  const {cacheBytes} = estimateFit({...shapes['8B'], caches}, {slots: 1, context: 32_768}, onRam);
  t.is(cacheBytes, 4096 * (5 * 1536 + 32_768));
});

const wish: SizeWish = {slots: undefined, slotsMax: 4, context: undefined, contextMax: undefined};
const withTokens =
  (tokens: number) =>
  ({slots, context}: EngineSize): boolean =>
    slots * context <= tokens;

const sizes: readonly (readonly [string, Partial<SizeWish>, number, number, string])[] = [
  ['much room: four slots share 32k', {}, 131_072, 1e9, '4 × 8192'],
  ['one slot has 32k for itself', {slotsMax: 1}, 131_072, 1e9, '1 × 32768'],
  ['two slots share it', {slotsMax: 2}, 131_072, 1e9, '2 × 16384'],
  ['eight slots have 8k each', {slotsMax: 8}, 131_072, 1e9, '8 × 8192'],
  ['no more than it was trained for', {}, 2048, 1e9, '4 × 2048'],
  ['a header that does not tell limits nothing', {slotsMax: 2}, 0, 1e9, '2 × 16384'],
  ['the owner may allow more', {contextMax: 100_000}, 131_072, 1e9, '4 × 100000'],
  ['less room: the context shrinks first', {slotsMax: 2}, 131_072, 20_000, '2 × 9984'],
  ['then slots go, so that each keeps 8k', {}, 131_072, 20_000, '2 × 9984'],
  ['an owner who allows less than 8k keeps the slots', {contextMax: 4096}, 131_072, 16_384, '4 × 4096'],
  ['a single slot may have less than 8k', {}, 131_072, 5000, '1 × 4864'],
  ['but not less than 2k', {}, 131_072, 2000, 'none'],
  ['a small model may be whole with less', {}, 512, 600, '1 × 512'],
  ['what the owner says is kept to the letter', {slots: 3, context: 1000}, 131_072, 3000, '3 × 1000'],
  ['or it is not loaded', {slots: 3, context: 1000}, 131_072, 2999, 'none'],
  ['R106: a request that wants more than its share costs slots', {contextWanted: 16_384}, 131_072, 1e9, '2 × 16384'],
  ['R106: but never more than all share', {contextWanted: 131_072}, 131_072, 1e9, '1 × 32768'],
  ['R106: what everybody gets anyway costs nothing', {contextWanted: 8192}, 131_072, 1e9, '4 × 8192'],
  ['R106: more than it was trained for costs nothing', {contextWanted: 32_768}, 4096, 1e9, '4 × 4096'],
  ['R106: less room: slots go before the context', {contextWanted: 16_384}, 131_072, 20_000, '1 × 19968'],
  ['R106: still less room: what fits', {contextWanted: 16_384}, 131_072, 5000, '1 × 4864'],
  ["R106: the owner's bound holds", {contextMax: 4096, contextWanted: 16_384}, 131_072, 1e9, '4 × 4096'],
  ["R106: the owner's slots hold", {slots: 4, contextWanted: 16_384}, 131_072, 1e9, '4 × 8192'],
  ['slots to the letter, context as fits', {slots: 4}, 131_072, 16_384, '4 × 4096'],
];

for (const [title, changes, trained, tokens, expected] of sizes) {
  test(`size of an engine: ${title}`, t => {
    const size = sizeEngine({...wish, ...changes}, trained, withTokens(tokens));
    t.is(size === undefined ? 'none' : `${size.slots} × ${size.context}`, expected);
  });
}

test('the full size is what much room gives, and the least size is what is loaded at all', t => {
  t.deepEqual(fullSize(wish, 131_072), {slots: 4, context: 8192});
  t.deepEqual(leastSize(wish, 131_072), {slots: 1, context: 2048});
  t.deepEqual(leastSize(noWish, 512), {slots: 1, context: 512});
});
