/**
 * How much memory an engine takes, and how large it may be in a given room. Formulas measured against the buffers that
 * llama-server logs and against llama-fit-params; what a load really took corrects them later (engine: memory-notes).
 */

/** Layers that keep the same for every token, told together. */
export interface CacheLayers {
  readonly layers: number;
  /** Numbers of all key heads, and of all value heads, for one token in one layer. */
  readonly keyLength: number;
  readonly valueLength: number;
  /** These layers look back over so many tokens only; undefined: over the whole context. */
  readonly windowTokens: number | undefined;
}

/** What the header of a model tells about the memory that it takes. */
export interface ModelShape {
  readonly weightsBytes: number;
  /** Weights that an engine on a CPU copies into a layout that is faster to compute with. */
  readonly copiedBytes: number;
  readonly projectorBytes: number;
  /** It reads all of an image in one step, which must have room for it. */
  readonly wholeImages?: boolean;
  readonly embeddingLength: number;
  readonly feedForwardLength: number;
  /** Numbers of all query heads for one token. */
  readonly queryLength: number;
  readonly vocabularySize: number;
  readonly caches: readonly CacheLayers[];
  /** The context it was trained for; 0 when it does not say. */
  readonly contextMax: number;
}

export type CacheType = 'f32' | 'f16' | 'bf16' | 'q8_0' | 'q5_1' | 'q5_0' | 'q4_1' | 'q4_0' | 'iq4_nl';

/** Bytes of one number in the cache, by the name that llama-server has for the type. */
const cacheTypes: Readonly<Record<CacheType, number>> = {
  f32: 4,
  f16: 2,
  bf16: 2,
  q8_0: 34 / 32,
  q5_1: 24 / 32,
  q5_0: 22 / 32,
  q4_1: 20 / 32,
  q4_0: 18 / 32,
  iq4_nl: 18 / 32,
};

export function isCacheType(text: string): text is CacheType {
  return Object.hasOwn(cacheTypes, text);
}

/** How one engine is meant to run. */
export interface EngineSize {
  readonly slots: number;
  /** Context of one slot, in tokens. */
  readonly context: number;
}

/** Where an engine runs and how it keeps its cache. */
export interface FitConditions {
  readonly place: 'device' | 'ram';
  readonly keyType: CacheType;
  readonly valueType: CacheType;
}

export interface Fit {
  readonly weightsBytes: number;
  readonly cacheBytes: number;
  readonly computeBytes: number;
  readonly copyBytes: number;
  readonly projectorBytes: number;
  readonly overheadBytes: number;
  readonly totalBytes: number;
}

/** Context is kept in steps of this. */
const contextStepTokens = 256;

/** Prompts are read in batches of this; the working memory grows with it. */
const batchTokens = 512;

/** What an idle llama-server takes beside all that: measured 20 MB, and some for requests. */
const processBytes = 24 * 1024 * 1024;

/** What the driver of a device takes for a process there, before any model. */
const driverBytes = 300 * 1024 * 1024;

/** Token, position, two 64-bit places in the cache: numbers of four bytes that every token of a batch brings. */
const inputsPerToken = 6;

/** Pure: what an engine of that size takes, part by part. */
export function estimateFit(shape: ModelShape, size: EngineSize, conditions: FitConditions): Fit {
  const parts = {
    weightsBytes: shape.weightsBytes,
    cacheBytes: cacheBytes(shape, size, conditions),
    computeBytes: computeBytes(shape, size),
    copyBytes: conditions.place === 'ram' ? shape.copiedBytes : 0,
    projectorBytes: shape.projectorBytes,
    overheadBytes: conditions.place === 'ram' ? processBytes : driverBytes,
  };
  return {...parts, totalBytes: Math.ceil(Object.values(parts).reduce((sum, bytes) => sum + bytes, 0))};
}

function cacheBytes({caches}: ModelShape, {slots, context}: EngineSize, {keyType, valueType}: FitConditions): number {
  const perSlot = caches.map(({layers, keyLength, valueLength, windowTokens}) => {
    const perToken = keyLength * cacheTypes[keyType] + valueLength * cacheTypes[valueType];
    return layers * perToken * keptTokens(context, windowTokens);
  });
  return slots * perSlot.reduce((sum, bytes) => sum + bytes, 0);
}

function keptTokens(context: number, windowTokens: number | undefined): number {
  const kept = windowTokens === undefined ? context : Math.min(context, windowTokens + batchTokens);
  return Math.ceil(kept / contextStepTokens) * contextStepTokens;
}

/**
 * The largest of what lives at the same time: while a layer computes, its numbers beside the mask of the attention (of
 * two bytes for every token of the batch and of the context); at the end, the scores of all words. An engine that
 * scores only the last token of a prompt takes less than that.
 */
function computeBytes(shape: ModelShape, {slots, context}: EngineSize): number {
  const {embeddingLength, vocabularySize, caches} = shape;
  const batch = Math.min(batchTokens, slots * context);
  const windows = new Set(caches.map(({windowTokens}) => windowTokens));
  const maskBytes = [...windows].reduce((sum: number, window) => sum + keptTokens(context, window) * batch * 2, 0);
  const layerBytes = batch * 4 * (numbersOfLayer(shape) + inputsPerToken) + maskBytes;
  return Math.max(layerBytes, batch * 4 * (vocabularySize + 2 * embeddingLength)) + slots * vocabularySize * 4;
}

/** Numbers per token that live at the same time; a short feed-forward finds places that the attention has left. */
function numbersOfLayer(shape: ModelShape): number {
  const {embeddingLength, feedForwardLength, queryLength, caches} = shape;
  const keyLength = Math.max(0, ...caches.map(cache => Math.max(cache.keyLength, cache.valueLength)));
  const attention = 2 * embeddingLength + 2 * queryLength + 2 * keyLength;
  const copies = Math.min(3, Math.max(1, Math.ceil(feedForwardLength / Math.max(1, embeddingLength))));
  return Math.max(attention, 4 * embeddingLength + copies * feedForwardLength);
}

/** What the owner wants of an engine; what is not said follows from the model and the room. */
export interface SizeWish {
  /** Exactly so many slots; undefined: up to `slotsMax`. */
  readonly slots: number | undefined;
  readonly slotsMax: number;
  /** Exactly so much context for each slot, in tokens; undefined: as much as fits up to `contextMax`. */
  readonly context: number | undefined;
  /** Most for one slot; undefined: a fair share of `contextPool`. */
  readonly contextMax: number | undefined;
  /** What a request would like for its slot; it may cost slots, but no more memory than the owner allows. */
  readonly contextWanted?: number | undefined;
}

/** Context that all slots of one engine share when nobody says more: enough for most, and other models fit beside. */
const contextPool = 32_768;

/** A slot with less is of little use to programs that send files and tools; fewer slots are better then. */
const contextKept = 8192;

/** With less than this, a model is not loaded at all. */
const contextLeast = 2048;

/** Pure: the size with the most context and slots that the room bears; undefined: not even the least fits. */
export function sizeEngine(
  wish: SizeWish,
  contextTrained: number,
  fits: (size: EngineSize) => boolean,
): EngineSize | undefined {
  for (let slots = slotsMost(wish, contextTrained); slots >= 1; slots -= 1) {
    const {most, kept} = contextBounds(wish, contextTrained, slots);
    const context = mostContext(kept, most, tokens => fits({slots, context: tokens}));
    if (context !== undefined) return {slots, context};
    if (wish.slots !== undefined) break;
  }
  const last = wish.slots ?? 1;
  const {most, least} = contextBounds(wish, contextTrained, last);
  const context = mostContext(least, most, tokens => fits({slots: last, context: tokens}));
  return context === undefined ? undefined : {slots: last, context};
}

/** Pure: the size that an empty machine without limits would give. */
export function fullSize(wish: SizeWish, contextTrained: number): EngineSize {
  const slots = slotsMost(wish, contextTrained);
  return {slots, context: contextBounds(wish, contextTrained, slots).most};
}

/** Pure: the smallest size that is loaded at all. */
export function leastSize(wish: SizeWish, contextTrained: number): EngineSize {
  const slots = wish.slots ?? 1;
  return {slots, context: contextBounds(wish, contextTrained, slots).least};
}

/** Every model can be asked what it needs without anybody's wishes: one slot, the least context. */
export const noWish: SizeWish = {slots: undefined, slotsMax: 1, context: undefined, contextMax: undefined};

interface ContextBounds {
  readonly most: number;
  readonly kept: number;
  readonly least: number;
}

/** So many that each has the context which is wanted, out of what all share. */
function slotsMost({slots, slotsMax, contextMax, contextWanted = 0}: SizeWish, trained: number): number {
  if (slots !== undefined) return slots;
  const wanted = Math.min(contextWanted, contextPool, trained > 0 ? trained : Infinity);
  if (contextMax !== undefined || wanted <= contextKept) return slotsMax;
  return Math.min(slotsMax, Math.floor(contextPool / wanted));
}

function contextBounds(
  {context, contextMax, contextWanted = 0}: SizeWish,
  trained: number,
  slots: number,
): ContextBounds {
  const learnt = trained > 0 ? trained : Infinity;
  if (context !== undefined) {
    const exact = Math.min(context, learnt);
    return {most: exact, kept: exact, least: exact};
  }
  const share = Math.max(contextKept, Math.floor(contextPool / slots / contextStepTokens) * contextStepTokens);
  const most = Math.min(contextMax ?? share, learnt);
  return {most, kept: Math.min(most, Math.max(contextKept, contextWanted)), least: Math.min(most, contextLeast)};
}

/** By halves, in whole steps; undefined when not even the least fits. */
function mostContext(least: number, most: number, fits: (context: number) => boolean): number | undefined {
  if (fits(most)) return most;
  if (!fits(least)) return undefined;
  let [low, high] = [Math.floor(least / contextStepTokens), Math.ceil(most / contextStepTokens)];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle * contextStepTokens)) low = middle;
    else high = middle;
  }
  return Math.max(least, low * contextStepTokens);
}
