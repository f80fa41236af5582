import type {ServerResponse} from 'node:http';
import type {Socket} from 'node:net';
import type {Clock} from '@hearsay/core';

export interface Patience {
  /** How long nothing is sent at all, so that a failure can still have a status of its own. */
  readonly silenceMs: number;
  /** Pause between the signs of life that keep the connection open after that (R13). */
  readonly keepAliveMs: number;
  /** A client that takes no byte for this long loses its answer, so that others get its slot; a quarter of an hour. */
  readonly stalledMs?: number | undefined;
  /** What the client waits for, where a sign of life can say so. */
  readonly waitsFor?: (() => string | undefined) | undefined;
}

export interface StreamStyle {
  readonly contentType: string;
  /** A sign of life that is no output: a comment, a ping, an empty piece. */
  readonly keepAlive: () => string;
}

/** Longer than a person pauses an answer in a terminal to read; a laptop that sleeps keeps its connection for hours. */
const stalledMsUsual = 15 * 60_000;

/** Written by everything that streams server-sent events. */
export const eventStreamType = 'text/event-stream; charset=utf-8';

/**
 * The client's side of a streamed answer. Until the first output it keeps the client waiting: silently at first, then
 * with signs of life. It knows nothing of what is written, and it ends once.
 */
export class StreamOutput implements Disposable {
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  readonly #keepAliveMs: number;
  readonly #stalledMs: number;
  readonly #style: StreamStyle;
  #patience: Disposable;
  #hasOutput = false;
  #ended = false;

  constructor(response: ServerResponse, clock: Clock, patience: Patience, style: StreamStyle) {
    const {silenceMs, keepAliveMs, stalledMs = stalledMsUsual} = patience;
    this.#response = response;
    this.#clock = clock;
    this.#keepAliveMs = keepAliveMs;
    this.#stalledMs = stalledMs;
    this.#style = style;
    this.#patience = clock.after(silenceMs, () => this.#live());
  }

  /** Nothing more can be sent. */
  get isEnded(): boolean {
    return this.#ended;
  }

  /** The model has said something that the client may have seen. */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  /** Output; the first one ends the waiting. False: the client is gone. A promise while it must catch up. */
  write(piece: Uint8Array | string): boolean | Promise<boolean> {
    if (this.#ended || this.#response.destroyed) return false;
    if (!this.#hasOutput) {
      this.#hasOutput = true;
      this.#patience[Symbol.dispose]();
      this.#head();
    }
    if (this.#response.socket) writeTogether(this.#response.socket);
    return this.#response.write(piece) || this.#drained();
  }

  /** Ends it with what is still to be said. */
  end(piece: string = ''): void {
    if (this.#ended) return;
    this[Symbol.dispose]();
    if (this.#response.destroyed) return;
    this.#head();
    this.#response.end(piece);
  }

  [Symbol.dispose](): void {
    this.#ended = true;
    this.#patience[Symbol.dispose]();
  }

  /** Resolves when the client has caught up, or has gone; who does not catch up in time is sent away. */
  #drained(): Promise<boolean> {
    const response = this.#response;
    return new Promise(resolve => {
      const settle = (more: boolean): void => {
        response.removeListener('drain', onDrain).removeListener('close', onClose);
        stalled[Symbol.dispose]();
        resolve(more);
      };
      const onDrain = (): void => settle(true);
      const onClose = (): void => settle(false);
      const stalled = this.#clock.after(this.#stalledMs, () => void response.destroy());
      response.once('drain', onDrain).once('close', onClose);
    });
  }

  #head(): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(200, {
      'content-type': this.#style.contentType,
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no', // nginx would hold pieces back (C1, R10)
    });
  }

  #live(): void {
    this.#head();
    this.#response.write(this.#style.keepAlive());
    this.#patience = this.#clock.after(this.#keepAliveMs, () => this.#live());
  }
}

/**
 * What is written in this turn of the event loop leaves with one system call and in one packet: the last piece with the
 * end behind it, and all pieces that came in one packet. A turn ends when all that came in has been looked at, so
 * nothing waits for something that is not there yet. Of the socket, because a corked response may never tell of `drain`.
 */
function writeTogether(socket: Socket): void {
  if (socket.writableCorked > 0) return;
  socket.cork();
  setImmediate(() => socket.uncork());
}
