/** Longest line kept; llama-server's own are far shorter, and a line without an end must not grow. */
const lineLengthMax = 500;

/** The last lines of an output, in bounded memory however much is written. */
export class TextTail {
  readonly #linesMax: number;
  readonly #onLine: (line: string) => void;
  readonly #decoder = new TextDecoder();
  readonly #lines: string[] = [];
  #unfinished = '';

  /** `onLine` is told of every whole line that is not empty. */
  constructor(linesMax: number, onLine: (line: string) => void = () => {}) {
    this.#linesMax = linesMax;
    this.#onLine = onLine;
  }

  push(bytes: Uint8Array): void {
    const [first = '', ...rest] = this.#decoder.decode(bytes, {stream: true}).split(/\r?\n/u);
    this.#extend(first);
    for (const text of rest) {
      this.#finishLine();
      this.#extend(text);
    }
  }

  /** Whole lines and what has come of the last one, oldest first, without empty ones. */
  lines(): readonly string[] {
    const lines = [...this.#lines, this.#unfinished.trimEnd()];
    return lines.filter(line => line !== '').slice(-this.#linesMax);
  }

  #extend(text: string): void {
    this.#unfinished = (this.#unfinished + text).slice(0, lineLengthMax);
  }

  #finishLine(): void {
    const line = this.#unfinished.trimEnd();
    this.#unfinished = '';
    if (line === '') return;
    this.#lines.push(line);
    this.#onLine(line);
    if (this.#lines.length > this.#linesMax) this.#lines.shift();
  }
}
