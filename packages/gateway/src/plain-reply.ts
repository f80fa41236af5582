import type {ServerResponse} from 'node:http';
import {bodyBytesMax, Fault} from '@hearsay/core';
import type {ErrorForm} from './error-form.ts';
import {isObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {isProblem, sendProblem, sendText} from './problem.ts';
import type {Problem} from './problem.ts';
import type {Reply} from './reply.ts';
import {problemFromEvent} from './upstream-problem.ts';

/** Passes on an answer that comes in one piece. Nothing is sent before it is whole. */
export class PlainReply implements Reply {
  readonly #response: ServerResponse;
  readonly #errors: ErrorForm;
  readonly #chunks: Uint8Array[] = [];
  readonly #rewrite: ((answer: JsonObject) => JsonObject | string) | undefined;
  #contentType = 'application/json';
  #restBytes = bodyBytesMax;
  #ended = false;

  constructor(response: ServerResponse, errors: ErrorForm, rewrite?: (answer: JsonObject) => JsonObject | string) {
    this.#response = response;
    this.#errors = errors;
    this.#rewrite = rewrite;
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
    const shown = this.#contentType.startsWith('application/json') ? this.#judge(bytes) : bytes;
    if (isProblem(shown)) return this.fail(shown);
    this.#ended = true;
    if (typeof shown === 'string') return sendText(this.#response, shown);
    this.#response.writeHead(200, {'content-type': this.#contentType, 'content-length': shown.length});
    this.#response.end(shown);
  }

  fail(problem: Problem): void {
    if (this.#ended) return;
    this.#ended = true;
    if (!this.#response.destroyed) sendProblem(this.#response, problem, this.#errors);
  }

  [Symbol.dispose](): void {
    this.#ended = true;
  }

  /** The bytes as they came, unless they are to be rewritten. Some answers are lists, and one may be an error (R21). */
  #judge(bytes: Buffer): Buffer | Problem | string {
    const answer = parse(bytes.toString());
    const problem = isObject(answer) ? problemFromEvent(answer) : undefined;
    if (problem) return problem;
    if (!isObject(answer) && !Array.isArray(answer)) {
      throw new Fault('ENGINE_FAILED', 'the answer of the engine is not JSON');
    }
    if (this.#rewrite === undefined || !isObject(answer)) return bytes;
    const rewritten = this.#rewrite(answer);
    return typeof rewritten === 'string' ? rewritten : Buffer.from(JSON.stringify(rewritten));
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the caller says what it should have been
  }
}
