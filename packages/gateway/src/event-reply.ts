import type {ServerResponse} from 'node:http';
import type {Clock} from '@hearsay/core';
import type {ErrorForm} from './error-form.ts';
import {EventSplitter} from './event-stream.ts';
import type {ServerEvent} from './event-stream.ts';
import type {JsonObject} from './json.ts';
import {problemBody, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {truncated} from './reply.ts';
import type {Reply} from './reply.ts';
import {StreamOutput} from './stream-output.ts';
import type {Patience, StreamStyle} from './stream-output.ts';

/** Turns llama-server's events, one by one, into what a dialect's clients expect. */
export interface EventTranslator {
  readonly errors: ErrorForm;
  readonly style: StreamStyle;
  /** What the event becomes, perhaps nothing; a problem when it says that the run failed. */
  translate(event: ServerEvent): string | Problem;
  /** The end mark has come. */
  isWhole(): boolean;
  /** The last words of a stream that broke, with the problem as the dialect's error body. */
  failure(problem: Problem, body: JsonObject): string;
}

/** Gives a client a stream of whole events, so that one that breaks ends between two of them, with an error. */
export class EventReply implements Reply {
  readonly #response: ServerResponse;
  readonly #output: StreamOutput;
  readonly #translator: EventTranslator;
  readonly #splitter = new EventSplitter();

  constructor(response: ServerResponse, translator: EventTranslator, clock: Clock, patience: Patience) {
    this.#response = response;
    this.#translator = translator;
    this.#output = new StreamOutput(response, clock, patience, translator.style);
  }

  write(chunk: Uint8Array): boolean | Promise<boolean> {
    if (this.#output.isEnded) return false;
    let text = '';
    for (const event of this.#splitter.push(chunk)) {
      const piece = this.#translator.translate(event);
      if (typeof piece === 'string') {
        text += piece;
        continue;
      }
      if (text !== '') void this.#output.write(text);
      this.fail(piece);
      return false;
    }
    return text === '' || this.#output.write(text);
  }

  isWhole(): boolean {
    return this.#translator.isWhole();
  }

  end(): void {
    if (this.#output.isEnded) return;
    if (this.#translator.isWhole()) this.#output.end();
    else this.fail(truncated);
  }

  fail(problem: Problem): void {
    if (this.#output.isEnded) return;
    const {errors} = this.#translator;
    if (this.#response.headersSent) {
      this.#output.end(this.#translator.failure(problem, problemBody(this.#response, problem, errors)));
    } else {
      this.#output[Symbol.dispose]();
      if (!this.#response.destroyed) sendProblem(this.#response, problem, errors);
    }
  }

  [Symbol.dispose](): void {
    this.#output[Symbol.dispose]();
  }
}

/** Pure: an event as it goes over the wire. */
export function eventText(name: string, data: string): string {
  return `event: ${name}\ndata: ${data}\n\n`;
}
