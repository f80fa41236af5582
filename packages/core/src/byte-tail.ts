/** How much of the end is kept: the last events of an answer, with what llama-server counted. */
const tailBytesMax = 4096;

const decoder = new TextDecoder('utf-8', {ignoreBOM: true});

/** The end of a stream of bytes, kept without copying: only the last few chunks are held. */
export class ByteTail {
  readonly #chunks: Uint8Array[] = [];
  #length = 0;
  #hasDropped = false;

  /** The end is all there was. */
  get isAll(): boolean {
    return !this.#hasDropped && this.#length <= tailBytesMax;
  }

  add(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    for (let first = this.#chunks[0]; first && this.#length - first.length >= tailBytesMax; first = this.#chunks[0]) {
      this.#chunks.shift();
      this.#hasDropped = true;
      this.#length -= first.length;
    }
  }

  /** As UTF-8; a character that is cut at the beginning is replaced. */
  text(): string {
    const [only] = this.#chunks;
    if (only !== undefined && this.#chunks.length === 1) return decoder.decode(only.subarray(-tailBytesMax));
    const bytes = new Uint8Array(this.#length);
    let at = 0;
    for (const chunk of this.#chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return decoder.decode(bytes.subarray(-tailBytesMax));
  }
}
