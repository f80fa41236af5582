const unitBytes: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  tib: 1024 ** 4,
};

/** Bytes as people write them: `2GiB`, `16 GB`, `1.5gib`, or a plain number. Undefined when it is none. */
export function parseByteCount(value: number | string): number | undefined {
  const {count, unit = ''} = /^(?<count>\d+(?:\.\d+)?)\s*(?<unit>[a-z]*)$/iu.exec(String(value).trim())?.groups ?? {};
  const factor = unitBytes[unit.toLowerCase()];
  if (count === undefined || factor === undefined) return undefined;
  const bytes = Math.round(Number(count) * factor);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}
