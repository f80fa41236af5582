import type {ServerResponse} from 'node:http';
import {Fault} from '@hearsay/core';
import type {Clock} from '@hearsay/core';
import {ollamaErrors} from '../error-form.ts';
import {EventSplitter} from '../event-stream.ts';
import type {JsonObject} from '../json.ts';
import {isProblem, problemBody, sendProblem} from '../problem.ts';
import type {Problem} from '../problem.ts';
import {truncated} from '../reply.ts';
import type {Reply} from '../reply.ts';
import {StreamOutput} from '../stream-output.ts';
import type {Patience} from '../stream-output.ts';
import type {AnswerLines} from './answer-lines.ts';

/** Longest line that Ollama's own client can read (C13). */
const lineCharactersMax = 8 * 1024 * 1024;

/**
 * Streams an answer as one JSON object a line, each sent as soon as it is known. A run that breaks ends with a line
 * that has an `error`, and never with one that is done.
 */
export class NdjsonReply implements Reply {
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  readonly #keepAliveMs: number;
  readonly #output: StreamOutput;
  readonly #splitter = new EventSplitter();
  readonly #lines: AnswerLines;
  #saidMs: number;

  constructor(response: ServerResponse, clock: Clock, patience: Patience, lines: AnswerLines) {
    this.#response = response;
    this.#clock = clock;
    this.#keepAliveMs = patience.keepAliveMs;
    this.#lines = lines;
    this.#saidMs = clock.monotonicMs();
    const keepAlive = (): string => textOf([lines.idle()]);
    this.#output = new StreamOutput(response, clock, patience, {contentType: 'application/x-ndjson', keepAlive});
  }

  write(chunk: Uint8Array): boolean | Promise<boolean> {
    if (this.#output.isEnded) return false;
    const lines: JsonObject[] = [];
    for (const event of this.#splitter.push(chunk)) {
      const added = this.#lines.add(event);
      if (isProblem(added)) {
        if (lines.length > 0) void this.#output.write(textOf(lines)); // ended below, so nobody needs to wait
        this.fail(added);
        return false;
      }
      lines.push(...added);
    }
    if (lines.length === 0 && !this.#isSilent()) return true;
    this.#saidMs = this.#clock.monotonicMs();
    return this.#output.write(textOf(lines.length > 0 ? lines : [this.#lines.idle()]));
  }

  isWhole(): boolean {
    return this.#lines.isWhole;
  }

  end(): void {
    if (this.#output.isEnded) return;
    if (this.#lines.isWhole) this.#output.end(textOf(this.#lines.finish()));
    else this.fail(truncated);
  }

  fail(problem: Problem): void {
    if (this.#output.isEnded) return;
    if (this.#response.headersSent) {
      this.#output.end(textOf([problemBody(this.#response, problem, ollamaErrors)]));
    } else {
      this.#output[Symbol.dispose]();
      if (!this.#response.destroyed) sendProblem(this.#response, problem, ollamaErrors);
    }
  }

  [Symbol.dispose](): void {
    this.#output[Symbol.dispose]();
  }

  /** A tool call is held back until it is whole; meanwhile the client must not take us for dead. */
  #isSilent(): boolean {
    return this.#output.hasOutput && this.#clock.monotonicMs() - this.#saidMs >= this.#keepAliveMs;
  }
}

function textOf(lines: readonly JsonObject[]): string {
  let text = '';
  for (const line of lines) {
    const written = JSON.stringify(line);
    if (written.length > lineCharactersMax) {
      throw new Fault('ENGINE_FAILED', `one line of the answer is longer than ${lineCharactersMax} characters`);
    }
    text += `${written}\n`;
  }
  return text;
}
