/** How much of the end is kept: the last events of an answer, with what llama-server counted. */
const tailBytesMax = 4096;

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

  text(): string {
    return Buffer.concat(this.#chunks).subarray(-tailBytesMax).toString('utf8');
  }
}
