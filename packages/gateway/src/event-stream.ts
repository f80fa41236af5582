import {Fault} from '@hearsay/core';
import {isObject, parseObject} from './json.ts';
import type {JsonObject} from './json.ts';

/** Longest event that is put together from its pieces: a tool call may carry a whole file (C13). */
const eventCharactersMax = 16 * 1024 * 1024;

/** One server-sent event. */
export interface ServerEvent {
  /** Of the `event:` line; empty when there was none. */
  readonly name: string;
  readonly data: string;
}

/** Cuts the bytes of a server-sent event stream, however they are split, into its events. */
export class EventSplitter {
  readonly #decoder = new TextDecoder();
  #line = '';
  #name = '';
  #data: string[] = [];
  #characters = 0;

  /** The events that these bytes complete. Comments and other fields are dropped. */
  push(bytes: Uint8Array): readonly ServerEvent[] {
    const lines = this.#decoder.decode(bytes, {stream: true}).split('\n');
    const rest = lines.pop() ?? '';
    const complete: ServerEvent[] = [];
    for (const piece of lines) {
      const line = this.#line + piece;
      this.#line = '';
      const event = this.#take(line.endsWith('\r') ? line.slice(0, -1) : line);
      if (event !== undefined) complete.push(event);
    }
    this.#line += rest;
    if (this.#characters + this.#line.length > eventCharactersMax) {
      throw new Fault('ENGINE_FAILED', `one event of the answer is larger than ${eventCharactersMax} characters`);
    }
    return complete;
  }

  #take(line: string): ServerEvent | undefined {
    if (line === '') {
      const [name, data] = [this.#name, this.#data];
      this.#name = '';
      this.#data = [];
      this.#characters = 0;
      return data.length > 0 ? {name, data: data.join('\n')} : undefined;
    }
    if (line.startsWith('event:')) this.#name = line.slice(6).trim();
    if (line.startsWith('data:')) {
      this.#data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
      this.#characters += line.length;
    }
    return undefined;
  }
}

/** `complete`: ended with `[DONE]` · `failed`: ended with an error event · `cut`: anything else. */
export type StreamEnd = 'complete' | 'failed' | 'cut';

/** Pure: how a stream ended, from its last bytes. Text of a model cannot look like this: it stands inside JSON. */
export function judgeEnd(tail: string): StreamEnd {
  const lines = tail.trimEnd().split('\n');
  if (/^data: ?\[DONE\]$/u.test(lines.at(-1) ?? '')) return 'complete';
  return lines.slice(-2).some(line => /^(?:data: ?\{"error":|event: ?error\r?$)/u.test(line)) ? 'failed' : 'cut';
}

/** Pure: whether an event written after these bytes stands alone. */
export function isAtBoundary(tail: string): boolean {
  return tail === '' || /(?:\n\n|\r\n\r\n)$/u.test(tail);
}

/** Pure: the error event that a stream begins with; undefined when it begins with anything else (R21). */
export function leadingError(chunk: Uint8Array): JsonObject | undefined {
  const start = Buffer.from(chunk.buffer, chunk.byteOffset, Math.min(chunk.length, 32)).toString('latin1');
  if (!/^(?:event: ?error\r?\n)?data: ?\{"error"/u.test(start)) return undefined;
  const first = new EventSplitter().push(chunk)[0];
  const event = first && parseObject(first.data);
  return event && isObject(event['error']) ? event : undefined;
}
