import type {ServerResponse} from 'node:http';
import type {Clock} from '@hearsay/core';
import {isAtBoundary, judgeEnd, leadingError, StreamTail} from './event-stream.ts';
import {problemBody, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {truncated} from './reply.ts';
import type {Reply} from './reply.ts';
import {problemFromEvent} from './upstream-problem.ts';

export interface StreamReplyConfig {
  /** How long nothing is sent at all, so that a failure can still have a status of its own. */
  readonly silenceMs: number;
  /** Pause between the comments that keep the connection alive after that (R13). */
  readonly keepAliveMs: number;
  /** What the client waits for, to be said in those comments. */
  readonly waitsFor?: () => string | undefined;
}

const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no', // nginx would hold events back (C1, R10)
};

/**
 * Passes an event stream on byte for byte. Until the first byte it keeps the client waiting: silently at first, then
 * with comments, which are no output. A stream that breaks ends with an error event and without `[DONE]`.
 */
export class StreamReply implements Reply {
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  readonly #keepAliveMs: number;
  readonly #waitsFor: () => string | undefined;
  readonly #tail = new StreamTail();
  #patience: Disposable;
  #hasOutput = false;
  #ended = false;

  constructor(response: ServerResponse, clock: Clock, {silenceMs, keepAliveMs, waitsFor}: StreamReplyConfig) {
    this.#response = response;
    this.#clock = clock;
    this.#keepAliveMs = keepAliveMs;
    this.#waitsFor = waitsFor ?? (() => undefined);
    this.#patience = clock.after(silenceMs, () => this.#comment());
  }

  write(chunk: Uint8Array): boolean | Promise<boolean> {
    if (this.#ended) return false;
    if (chunk.length === 0) return true;
    if (!this.#hasOutput && !this.#begin(chunk)) return false;
    this.#tail.see(chunk);
    return this.#response.write(chunk) || drained(this.#response);
  }

  end(): void {
    if (this.#ended) return;
    if (judgeEnd(this.#tail.text()) === 'cut') return this.fail(truncated);
    this.#finish();
    this.#response.end();
  }

  fail(problem: Problem): void {
    if (this.#ended) return;
    this.#finish();
    if (this.#response.destroyed) return;
    if (!this.#response.headersSent) return sendProblem(this.#response, problem);
    const gap = isAtBoundary(this.#tail.text()) ? '' : '\n\n';
    this.#response.end(`${gap}data: ${JSON.stringify(problemBody(problem))}\n\n`);
  }

  [Symbol.dispose](): void {
    this.#finish();
  }

  /**
   * Sends the head, in one packet with the first output. False: the answer begins with an error, so there is no output
   * (R21).
   */
  #begin(chunk: Uint8Array): boolean {
    const event = leadingError(chunk);
    const problem = event && problemFromEvent(event);
    if (problem) {
      this.fail(problem);
      return false;
    }
    this.#hasOutput = true;
    this.#patience[Symbol.dispose]();
    if (!this.#response.headersSent) this.#response.writeHead(200, streamHeaders);
    return true;
  }

  #comment(): void {
    if (!this.#response.headersSent) this.#response.writeHead(200, streamHeaders);
    const what = this.#waitsFor()?.replaceAll(/[^\x20-\x7e]/gu, '?');
    this.#response.write(what === undefined ? ': waiting\n\n' : `: waiting, ${what}\n\n`);
    this.#patience = this.#clock.after(this.#keepAliveMs, () => this.#comment());
  }

  #finish(): void {
    this.#ended = true;
    this.#patience[Symbol.dispose]();
  }
}

/** Resolves when the client has caught up, or has gone. */
function drained(response: ServerResponse): Promise<boolean> {
  return new Promise(resolve => {
    const settle = (more: boolean): void => {
      response.removeListener('drain', onDrain).removeListener('close', onClose);
      resolve(more);
    };
    const onDrain = (): void => settle(true);
    const onClose = (): void => settle(false);
    response.once('drain', onDrain).once('close', onClose);
  });
}
