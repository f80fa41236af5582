import type {GgufHeader, GgufScalar} from './read-gguf.ts';

export function numberAt({metadata}: GgufHeader, key: string): number | undefined {
  return toCount(metadata.get(key));
}

/** A number that is the same in all layers, or one for each. */
export function perLayer({metadata}: GgufHeader, key: string): ((layer: number) => number) | undefined {
  const value = metadata.get(key);
  if (typeof value === 'object') return layer => toCount(value.items?.[layer]) ?? 0;
  const same = toCount(value);
  return same === undefined ? undefined : () => same;
}

/** Sizes and counts are finite and not negative; anything else in a header means nothing. */
function toCount(value: GgufScalar | object | undefined): number | undefined {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : undefined;
}
