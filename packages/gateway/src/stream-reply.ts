import type {ServerResponse} from 'node:http';
import {ByteTail} from '@hearsay/core';
import type {Clock} from '@hearsay/core';
import {openAiErrors} from './error-form.ts';
import {isAtBoundary, judgeEnd, leadingError} from './event-stream.ts';
import {problemBody, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {truncated} from './reply.ts';
import type {Reply} from './reply.ts';
import {eventStreamType, StreamOutput} from './stream-output.ts';
import type {Patience, StreamStyle} from './stream-output.ts';
import {problemFromEvent} from './upstream-problem.ts';

/** Knows the ends of a stream that need not be `[DONE]`. */
export interface EndWatch {
  take(chunk: Uint8Array): void;
  /** Its end has been told. */
  isWhole(): boolean;
  /** It may end here. */
  isEnd(): boolean;
}

/**
 * Passes OpenAI's event stream on byte for byte, because llama-server speaks the same. A stream that breaks ends with
 * an error event and without `[DONE]`.
 */
export class StreamReply implements Reply {
  readonly #response: ServerResponse;
  readonly #output: StreamOutput;
  readonly #tail = new ByteTail();
  readonly #watch: EndWatch | undefined;

  constructor(response: ServerResponse, clock: Clock, patience: Patience, watch?: EndWatch) {
    this.#response = response;
    this.#watch = watch;
    this.#output = new StreamOutput(response, clock, patience, styleFor(patience));
  }

  write(chunk: Uint8Array): boolean | Promise<boolean> {
    if (this.#output.isEnded) return false;
    if (chunk.length === 0) return true;
    if (!this.#output.hasOutput && this.#failsAtOnce(chunk)) return false;
    this.#tail.add(chunk);
    this.#watch?.take(chunk);
    return this.#output.write(chunk);
  }

  isWhole(): boolean {
    return this.#watch?.isWhole() === true || judgeEnd(this.#tail.text()) === 'complete';
  }

  end(): void {
    if (this.#output.isEnded) return;
    const isEnd = this.#watch?.isEnd() === true || judgeEnd(this.#tail.text()) !== 'cut';
    if (!isEnd) this.fail(truncated);
    else this.#output.end();
  }

  fail(problem: Problem): void {
    if (this.#output.isEnded) return;
    if (this.#response.headersSent) {
      const gap = isAtBoundary(this.#tail.text()) ? '' : '\n\n';
      this.#output.end(`${gap}data: ${JSON.stringify(problemBody(this.#response, problem, openAiErrors))}\n\n`);
    } else {
      this.#output[Symbol.dispose]();
      if (!this.#response.destroyed) sendProblem(this.#response, problem, openAiErrors);
    }
  }

  [Symbol.dispose](): void {
    this.#output[Symbol.dispose]();
  }

  /** An answer that begins with an error has no output (R21). */
  #failsAtOnce(chunk: Uint8Array): boolean {
    const event = leadingError(chunk);
    const problem = event && problemFromEvent(event);
    if (problem) this.fail(problem);
    return problem !== undefined;
  }
}

/** Comments say what the client waits for, in letters that every proxy passes on. */
function styleFor({waitsFor}: Patience): StreamStyle {
  return {
    contentType: eventStreamType,
    keepAlive: () => {
      const what = waitsFor?.()?.replaceAll(/[^\x20-\x7e]/gu, '?');
      return what === undefined ? ': waiting\n\n' : `: waiting, ${what}\n\n`;
    },
  };
}
