/**
 * What a request says about how long its model stays loaded afterwards. `unset`: it says nothing, and the owner's
 * setting holds.
 */
export type KeepAlive =
  | {readonly kind: 'unset'}
  | {readonly kind: 'given'; readonly ms: number}
  | {readonly kind: 'bad'; readonly message: string};

/** The owner's say, in milliseconds; Infinity is for ever. */
export interface KeepAliveLimits {
  /** Without a word from the request. */
  readonly usualMs: number;
  readonly minMs: number;
  readonly maxMs: number;
}

const unitMs: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** Nobody waits for the end of what lasts longer than a century: it is for ever. */
const spanMsMax = 100 * 365 * 86_400_000;

/** Longest text that is a duration; the rest of a longer one is not even quoted. */
const textLengthMax = 40;

/**
 * Reads Ollama's `keep_alive` (R103): a number or a text of digits is seconds, a text with units is a duration (`5m`,
 * `1h30m`), anything negative is for ever, `null` or absent says nothing.
 */
export function parseKeepAlive(value: unknown): KeepAlive {
  if (value === undefined || value === null) return {kind: 'unset'};
  if (typeof value === 'number') return given(Number.isNaN(value) ? undefined : value * 1000, value);
  if (typeof value !== 'string' || value.length > textLengthMax) return given(undefined, value);
  return given(durationMs(value.trim().toLowerCase()), value);
}

/** Pure: the keep-alive of an engine after one more request, which never shortens it without saying so. */
export function nextKeepAlive(
  presentMs: number | undefined,
  askedMs: number | undefined,
  {usualMs, minMs, maxMs}: KeepAliveLimits,
): number {
  if (askedMs !== undefined) return Math.min(Math.max(askedMs, minMs), maxMs);
  return Math.max(presentMs ?? 0, usualMs);
}

/** Milliseconds, negative for a negative span; undefined when it is none. */
function durationMs(text: string): number | undefined {
  const [, sign = '', span = ''] = /^([-+]?)(.*)$/su.exec(text) ?? [];
  const factor = sign === '-' ? -1 : 1;
  if (/^(?:\d+\.?\d*|\.\d+)$/u.test(span)) return factor * Number(span) * 1000;
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|[uµμ]s|ms|s|m|h|d))+$/u.test(span)) return undefined;
  const parts = [...span.matchAll(/([\d.]+)([a-zµμ]+)/gu)];
  return factor * parts.reduce((sum, [, count = '', unit = '']) => sum + Number(count) * (unitMs.get(unit) ?? 0), 0);
}

function given(ms: number | undefined, value: unknown): KeepAlive {
  if (ms !== undefined) return {kind: 'given', ms: ms < 0 || ms > spanMsMax ? Infinity : Math.abs(ms)};
  const shown =
    typeof value === 'string' ? JSON.stringify(value.slice(0, textLengthMax)) : String(value).slice(0, textLengthMax);
  return {
    kind: 'bad',
    message: `keep_alive ${shown} is no duration; use 5m, 1h30m, 300 (seconds), 0 (unload) or -1 (for ever)`,
  };
}
