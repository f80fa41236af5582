import {Fault} from '@hearsay/core';
import type {OpenFile} from './file-door.ts';

/**
 * Why a file cannot be used: part of the details of every fault about one. Only what is unreadable or
 * hung may get better by itself.
 */
export type BadFileReason = 'unreadable' | 'hung' | 'not-gguf' | 'damaged' | 'incomplete';

/** Read at once: most headers without their tokens fit, and it is little enough to throw away. */
const windowBytes = 256 * 1024;

/** Largest header that we read through: four times what a vocabulary of 262,144 tokens with merges takes. */
const headerBytesMax = 64 * 1024 * 1024;

/** Longest single text: the longest chat templates known have some 100 kB. */
const textBytesMax = 4 * 1024 * 1024;

export function badFile(
  reason: BadFileReason,
  message: string,
  details: Readonly<Record<string, unknown>> = {},
): Fault {
  return new Fault('BAD_FILE', message, {details: {reason, ...details}});
}

/**
 * Reads a header from front to back through a small window. `need` (or `skip`) brings bytes in, everything else takes
 * them without waiting. Throws BAD_FILE where the file ends too early or a length cannot be true.
 */
export class GgufCursor {
  readonly #file: OpenFile;
  readonly #fileBytes: number;
  readonly #signal: AbortSignal | undefined;
  #window: Buffer = Buffer.alloc(0);
  #windowStart = 0;
  #next = 0;

  constructor(file: OpenFile, fileBytes: number, signal: AbortSignal | undefined) {
    this.#file = file;
    this.#fileBytes = fileBytes;
    this.#signal = signal;
  }

  /** Where in the file the next byte is. */
  get position(): number {
    return this.#windowStart + this.#next;
  }

  /** True when that many bytes can be taken without waiting. */
  has(count: number): boolean {
    return this.#next + count <= this.#window.length;
  }

  async need(count: number): Promise<void> {
    if (this.has(count)) return;
    this.#signal?.throwIfAborted();
    const start = this.position;
    this.#requireWithin(start + count);
    const length = Math.min(Math.max(count, windowBytes), this.#fileBytes - start);
    const window = Buffer.alloc(length);
    let filled = 0;
    while (filled < count) {
      const {bytesRead} = await this.#file.read(window, filled, length - filled, start + filled);
      if (bytesRead === 0) throw endsEarly(start + filled); // it has shrunk since we asked for its size
      filled += bytesRead;
    }
    this.#window = window.subarray(0, filled);
    this.#windowStart = start;
    this.#next = 0;
  }

  skip(count: number): void {
    this.#requireWithin(this.position + count);
    if (this.has(count)) {
      this.#next += count;
    } else {
      this.#windowStart = this.position + count;
      this.#window = Buffer.alloc(0);
      this.#next = 0;
    }
  }

  /** The next bytes, which must be there. Only good until the next call. */
  take(count: number): Buffer {
    const bytes = this.#window.subarray(this.#next, this.#next + count);
    this.#next += count;
    return bytes;
  }

  uint32(): number {
    return this.take(4).readUInt32LE();
  }

  /** A count, length or place; larger ones than a number can hold exactly are never true. */
  uint64(): number {
    const value = this.take(8).readBigUInt64LE();
    if (value > Number.MAX_SAFE_INTEGER)
      throw badFile('damaged', 'it is damaged (an impossible length); download it again');
    return Number(value);
  }

  async text(bytesMax: number = textBytesMax): Promise<string> {
    await this.need(8);
    const length = this.uint64();
    if (length > bytesMax) throw badFile('damaged', `it is damaged (a text of ${length} bytes); download it again`);
    await this.need(length);
    return this.take(length).toString('utf8');
  }

  #requireWithin(end: number): void {
    if (end > this.#fileBytes) throw endsEarly(this.#fileBytes);
    if (end > headerBytesMax) {
      throw badFile('damaged', `its header is longer than ${headerBytesMax} bytes, which no known model needs`);
    }
  }
}

function endsEarly(fileBytes: number): Fault {
  return badFile(
    'incomplete',
    `it is incomplete (ends within its header, after ${fileBytes} bytes); download it again`,
  );
}
