import type {ServerResponse} from 'node:http';
import {Fault} from '@hearsay/core';
import type {Problem} from './problem.ts';
import type {Reply} from './reply.ts';

/** An answer whose form only the engine knows: a stream of events, as it was asked for, else one piece. */
export class EitherReply implements Reply {
  readonly #response: ServerResponse;
  #reply: Reply;
  readonly #plain: () => Reply;

  /** The first keeps the client patient; the other is opened when an answer in one piece comes. */
  constructor(response: ServerResponse, streamed: Reply, plain: () => Reply) {
    this.#response = response;
    this.#reply = streamed;
    this.#plain = plain;
  }

  begin(contentType: string): void {
    if (!contentType.startsWith('text/event-stream')) {
      // The client has been kept waiting as readers of a stream are: it can be told nothing else any more.
      if (this.#response.headersSent) throw new Fault('ENGINE_FAILED', `the engine answered ${contentType}, no stream`);
      this.#reply[Symbol.dispose]();
      this.#reply = this.#plain();
    }
    this.#reply.begin?.(contentType);
  }

  write(chunk: Uint8Array): boolean | Promise<boolean> {
    return this.#reply.write(chunk);
  }

  isWhole(): boolean {
    return this.#reply.isWhole?.() ?? false;
  }

  end(): void {
    this.#reply.end();
  }

  fail(problem: Problem): void {
    this.#reply.fail(problem);
  }

  [Symbol.dispose](): void {
    this.#reply[Symbol.dispose]();
  }
}
