const unitMs: Readonly<Record<string, number>> = {ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000};

/**
 * Milliseconds of a duration as Ollama's users write it: `5m`, `1h30m`, `300` (seconds), `0` (at once), anything
 * negative (for ever: Infinity). Undefined when it is none.
 */
export function parseDuration(value: number | string): number | undefined {
  const text = String(value).trim().toLowerCase();
  const negative = text.startsWith('-');
  const parts = negative ? text.slice(1) : text;
  if (/^\d+(\.\d+)?$/u.test(parts)) return negative && Number(parts) > 0 ? Infinity : Number(parts) * 1000;
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/u.test(parts)) return undefined;
  const totalMs = [...parts.matchAll(/([\d.]+)(ms|s|m|h|d)/gu)]
    .map(([, count = '', unit = '']) => Number(count) * (unitMs[unit] ?? 0))
    .reduce((sum, partMs) => sum + partMs, 0);
  return negative && totalMs > 0 ? Infinity : totalMs;
}
