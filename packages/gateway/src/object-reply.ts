import type {ServerResponse} from 'node:http';
import {bodyBytesMax, Fault} from '@hearsay/core';
import type {Endpoint} from '@hearsay/core';
import {Aggregate} from './aggregate.ts';
import {EventSplitter} from './event-stream.ts';
import {parseObject} from './json.ts';
import {sendJson, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {truncated} from './reply.ts';
import type {Reply} from './reply.ts';
import {problemFromEvent} from './upstream-problem.ts';

/** Largest stream that is put together in memory: no answer is meant to be larger than a request may be. */
const streamBytesMax = bodyBytesMax;

/** Puts a stream together to the one object that the client asked for. Nothing is sent before it is whole. */
export class ObjectReply implements Reply {
  readonly #response: ServerResponse;
  readonly #splitter = new EventSplitter();
  readonly #aggregate: Aggregate;
  #restBytes = streamBytesMax;
  #isWhole = false;
  #ended = false;

  constructor(response: ServerResponse, endpoint: Endpoint) {
    this.#response = response;
    this.#aggregate = new Aggregate(endpoint);
  }

  write(chunk: Uint8Array): boolean {
    this.#restBytes -= chunk.length;
    if (this.#restBytes < 0) throw new Fault('ENGINE_FAILED', `the answer is larger than ${streamBytesMax} bytes`);
    for (const data of this.#splitter.push(chunk)) this.#take(data);
    return !this.#ended;
  }

  end(): void {
    if (!this.#isWhole) return this.fail(truncated);
    if (this.#ended) return;
    this.#ended = true;
    sendJson(this.#response, 200, this.#aggregate.result());
  }

  fail(problem: Problem): void {
    if (this.#ended) return;
    this.#ended = true;
    if (!this.#response.destroyed) sendProblem(this.#response, problem);
  }

  [Symbol.dispose](): void {
    this.#ended = true;
  }

  #take(data: string): void {
    if (data === '[DONE]') {
      this.#isWhole = true;
      return;
    }
    const event = parseObject(data);
    if (event === undefined) throw new Fault('ENGINE_FAILED', 'the answer has an event that is not JSON');
    const problem = problemFromEvent(event);
    if (problem) this.fail(problem);
    else this.#aggregate.add(event);
  }
}
