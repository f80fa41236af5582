import {logLineLengthMax, logPageLinesMax} from '@hearsay/core';
import type {LogPage} from '@hearsay/core';

/** Some starts with all they say; a server that logs every request overwrites its own oldest lines. */
const linesMax = 1_000;

/** A page with the largest characters still fits one message between nodes. */
const pageBytesMax = 48 * 1024;

/** What one model's engine has written since the daemon started, over all its starts, in bounded memory. */
export class EngineLog {
  readonly #lines: string[] = [];
  /** Number of the oldest line that is still held. */
  #oldest = 0;

  add(line: string): void {
    this.#lines.push(line.slice(0, logLineLengthMax));
    if (this.#lines.length <= linesMax) return;
    this.#lines.shift();
    this.#oldest += 1;
  }

  /** Lines from number `after` on, as many as one page holds. */
  page(after: number): LogPage {
    const first = Math.min(Math.max(after, this.#oldest), this.#oldest + this.#lines.length);
    const lines: string[] = [];
    let bytes = 0;
    for (const line of this.#lines.slice(first - this.#oldest, first - this.#oldest + logPageLinesMax)) {
      bytes += Buffer.byteLength(line);
      if (bytes > pageBytesMax) break;
      lines.push(line);
    }
    return {lines, first, next: first + lines.length};
  }
}
