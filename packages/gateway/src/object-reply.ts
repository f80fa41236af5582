import type {ServerResponse} from 'node:http';
import {bodyBytesMax, Fault} from '@hearsay/core';
import type {ErrorForm} from './error-form.ts';
import {EventSplitter} from './event-stream.ts';
import type {ServerEvent} from './event-stream.ts';
import type {JsonObject} from './json.ts';
import {sendJson, sendProblem, sendText} from './problem.ts';
import type {Problem} from './problem.ts';
import {truncated} from './reply.ts';
import type {Reply} from './reply.ts';

/** Largest stream that is put together in memory: no answer is meant to be larger than a request may be. */
const streamBytesMax = bodyBytesMax;

/** Puts the events of one answer together to one object, in the client's dialect. */
export interface Assembly<Result = JsonObject> {
  readonly errors: ErrorForm;
  /** Takes the next event; a problem when it says that the run failed. */
  take(event: ServerEvent): Problem | undefined;
  /** The whole answer; undefined while the end mark has not come. */
  result(): Result | undefined;
  /** The whole answer, once the stream has ended as it should, where that is mark enough. */
  resultAtEnd?(): Result | undefined;
}

type Whole = JsonObject | readonly JsonObject[] | string;

/** Gives a client one object, or one text, that was streamed to us. Nothing is sent before it is whole. */
export class ObjectReply implements Reply {
  readonly #response: ServerResponse;
  readonly #splitter = new EventSplitter();
  readonly #assembly: Assembly<Whole>;
  #restBytes = streamBytesMax;
  #ended = false;

  constructor(response: ServerResponse, assembly: Assembly<Whole>) {
    this.#response = response;
    this.#assembly = assembly;
  }

  write(chunk: Uint8Array): boolean {
    this.#restBytes -= chunk.length;
    if (this.#restBytes < 0) throw new Fault('ENGINE_FAILED', `the answer is larger than ${streamBytesMax} bytes`);
    for (const event of this.#splitter.push(chunk)) {
      const problem = this.#assembly.take(event);
      if (problem) this.fail(problem);
    }
    return !this.#ended;
  }

  isWhole(): boolean {
    return this.#assembly.result() !== undefined;
  }

  end(): void {
    if (this.#ended) return;
    const result = this.#assembly.result() ?? this.#assembly.resultAtEnd?.();
    if (result === undefined) return this.fail(truncated);
    this.#ended = true;
    if (typeof result === 'string') sendText(this.#response, result);
    else sendJson(this.#response, 200, result);
  }

  fail(problem: Problem): void {
    if (this.#ended) return;
    this.#ended = true;
    if (!this.#response.destroyed) sendProblem(this.#response, problem, this.#assembly.errors);
  }

  [Symbol.dispose](): void {
    this.#ended = true;
  }
}
