/** What llama-server measured of one request, as it writes it into the last events of an answer. */
export interface Timings {
  /** Tokens of the prompt that were in its cache already. */
  readonly cachedTokens: number;
  /** Tokens of the prompt that it had to read. */
  readonly promptTokens: number;
  readonly promptMs: number;
  readonly outputTokens: number;
  readonly outputMs: number;
}

/** Inside the text of an answer the quotes would be escaped, so this is never what a model wrote. */
const mark = Buffer.from('"timings":{');
const quote = mark[0] ?? 0;
const nothing = new Uint8Array();

/** Longest timings; llama-server writes some 300 bytes. */
const timingsBytesMax = 2048;

/**
 * Looks for the timings in an answer that passes by, chunk by chunk, without parsing it. The last ones count. Costs one
 * search in each chunk.
 */
export class TimingsReader {
  /** The end of what was seen, when a mark or the timings after it may have been cut there. */
  #rest: Uint8Array = nothing;
  #found: Timings | undefined;

  read(chunk: Uint8Array): void {
    const bytes =
      this.#rest.length === 0 ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length) : this.#join(chunk);
    const start = bytes.lastIndexOf(mark);
    if (start < 0) {
      const cut = cutMark(bytes);
      this.#rest = cut === bytes.length ? nothing : Uint8Array.from(bytes.subarray(cut));
      return;
    }
    const end = bytes.indexOf('}', start);
    if (end >= 0) this.#found = parseTimings(bytes.toString('utf8', start + mark.length - 1, end + 1)) ?? this.#found;
    const isOpen = end < 0 && bytes.length - start <= timingsBytesMax;
    this.#rest = isOpen ? Uint8Array.from(bytes.subarray(start)) : nothing;
  }

  timings(): Timings | undefined {
    return this.#found;
  }

  #join(chunk: Uint8Array): Buffer {
    return Buffer.concat([this.#rest, chunk]);
  }
}

/** Where a mark may have begun that the end of the chunk cut off; the length of the chunk when none has. */
function cutMark(bytes: Buffer): number {
  const earliest = Math.max(0, bytes.length - mark.length + 1);
  for (let at = bytes.indexOf(quote, earliest); at >= 0; at = bytes.indexOf(quote, at + 1)) {
    if (bytes.compare(mark, 0, bytes.length - at, at) === 0) return at;
  }
  return bytes.length;
}

function parseTimings(text: string): Timings | undefined {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return undefined;
  }
  const numberIn = (key: string): number => {
    const value: unknown = typeof json === 'object' && json !== null ? Reflect.get(json, key) : undefined;
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0;
  };
  return {
    cachedTokens: numberIn('cache_n'),
    promptTokens: numberIn('prompt_n'),
    promptMs: numberIn('prompt_ms'),
    outputTokens: numberIn('predicted_n'),
    outputMs: numberIn('predicted_ms'),
  };
}
