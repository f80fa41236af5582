/** Different texts that are remembered at one time: clients send the same few again and again. */
const textsMax = 256;

/** Longer ones are not kept, so that nobody fills memory with them. */
const textLengthMax = 512;

/** The same pure function, which looks at a text that it has seen lately only once. */
export function remembered<T>(compute: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return text => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const value = compute(text);
    if (text.length > textLengthMax) return value;
    if (known.size >= textsMax) known.clear();
    known.set(text, value);
    return value;
  };
}
