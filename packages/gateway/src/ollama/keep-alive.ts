/** Milliseconds of each unit that Go's durations know. */
const unitMs: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/**
 * Pure: Ollama's `keep_alive` in milliseconds. Numbers, and texts without a unit, are seconds (R103); negative is for
 * ever. `unset`: the client leaves it to the server. Undefined: it is nothing that can be meant.
 */
export function parseKeepAlive(value: unknown): number | 'unset' | undefined {
  if (value === undefined || value === null || value === '') return 'unset';
  if (typeof value === 'number') return Number.isFinite(value) ? fromMs(value * 1000) : undefined;
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  if (/^[+-]?\d+(?:\.\d+)?$/u.test(text)) return fromMs(Number(text) * 1000);
  const match = /^([+-]?)((?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+)$/u.exec(text);
  if (!match) return undefined;
  const parts = (match[2] ?? '').matchAll(/(\d+(?:\.\d+)?)([a-zµ]+)/gu);
  let ms = 0;
  for (const [, amount, unit] of parts) ms += Number(amount) * (unitMs.get(unit ?? '') ?? 0);
  return fromMs(match[1] === '-' ? -ms : ms);
}

function fromMs(ms: number): number {
  return ms < 0 ? Number.POSITIVE_INFINITY : ms;
}
