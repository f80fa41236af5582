import type {ServerResponse} from 'node:http';
import {bodyBytesMax, Fault} from '@hearsay/core';
import type {ErrorForm} from './error-form.ts';
import {parseObject} from './json.ts';
import {sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import type {Reply} from './reply.ts';

/** Passes on an answer that comes in one piece. Nothing is sent before it is whole. */
export class PlainReply implements Reply {
  readonly #response: ServerResponse;
  readonly #errors: ErrorForm;
  readonly #chunks: Uint8Array[] = [];
  #contentType = 'application/json';
  #restBytes = bodyBytesMax;
  #ended = false;

  constructor(response: ServerResponse, errors: ErrorForm) {
    this.#response = response;
    this.#errors = errors;
  }

  begin(contentType: string): void {
    this.#contentType = contentType;
  }

  write(chunk: Uint8Array): boolean {
    this.#restBytes -= chunk.length;
    if (this.#restBytes < 0) throw new Fault('ENGINE_FAILED', `the answer is larger than ${bodyBytesMax} bytes`);
    this.#chunks.push(chunk);
    return !this.#ended;
  }

  end(): void {
    if (this.#ended) return;
    const bytes = Buffer.concat(this.#chunks);
    if (this.#contentType.startsWith('application/json') && parseObject(bytes.toString()) === undefined) {
      throw new Fault('ENGINE_FAILED', 'the answer of the engine is not JSON');
    }
    this.#ended = true;
    this.#response.writeHead(200, {'content-type': this.#contentType, 'content-length': bytes.length});
    this.#response.end(bytes);
  }

  fail(problem: Problem): void {
    if (this.#ended) return;
    this.#ended = true;
    if (!this.#response.destroyed) sendProblem(this.#response, problem, this.#errors);
  }

  [Symbol.dispose](): void {
    this.#ended = true;
  }
}
