import {Buffer} from 'node:buffer';
import {Duplex} from 'node:stream';
import type {Stream} from '@libp2p/interface';
import {encode as encodeFrames} from 'it-length-prefixed';
import {Fault} from '@hearsay/core';

type Done = (error?: Error | null) => void;

/** Bytes held in the stream before it tells the peer to wait: one read of node:http. */
const highWaterMark = 64 * 1024;

/** Longest length prefix: 28 bits, far above every frame. */
const prefixBytesMax = 4;

interface FrameWait {
  readonly bytesMax: number;
  readonly isLast: boolean;
  readonly resolve: (frame: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A libp2p stream as something that node:http takes for a socket. It begins with length-prefixed frames
 * (`readFrame`); from `startBytes` on, what comes in is an ordinary byte stream. Back-pressure works both ways, a
 * reset of the peer destroys it with an error, and destroying it resets the stream.
 */
export class StreamDuplex extends Duplex {
  readonly #stream: Stream;
  #head: Buffer = Buffer.alloc(0);
  #headOpen = true;
  #frameWait: FrameWait | undefined;
  // A field `_paused` would be taken for the socket's own by node:http, which then never resumes.
  #stopped = false;
  #ended = false;

  constructor(stream: Stream) {
    super({allowHalfOpen: true, highWaterMark});
    this.#stream = stream;
    stream.addEventListener('message', ({data}) => {
      for (const chunk of data instanceof Uint8Array ? [data] : data) this.#take(chunk);
    });
    // `remoteCloseWrite` comes before data that is still held back while paused; `end` comes after it.
    stream.addEventListener('end', () => this.#takeEnd());
    stream.addEventListener('close', ({error}) => {
      if (error === undefined && stream.readBufferLength > 0) return; // the rest is read first, then comes `end`
      if (error === undefined) this.#takeEnd();
      if (error !== undefined || !this.writableEnded) this.destroy(error ?? connectionLost());
    });
    if (stream.status !== 'open') this.destroy(connectionLost());
  }

  /**
   * Reads one length-prefixed frame. Call it before `startBytes`, one at a time. After the last one bytes begin by
   * themselves: more of them than a frame may have can be there already.
   */
  async readFrame(bytesMax: number, signal: AbortSignal, last?: 'last'): Promise<Uint8Array> {
    const abort = (): void => this.#frameWait?.reject(asError(signal.reason));
    signal.addEventListener('abort', abort, {once: true});
    try {
      return await new Promise<Uint8Array>((resolve, reject) => {
        this.#frameWait = {bytesMax, isLast: last !== undefined, resolve, reject};
        if (signal.aborted) abort();
        else if (this.destroyed || this.#ended) reject(this.errored ?? connectionLost());
        else this.#readHead();
      });
    } finally {
      this.#frameWait = undefined;
      signal.removeEventListener('abort', abort);
    }
  }

  /** Something has come behind the last frame. */
  get hasBytes(): boolean {
    return this.#head.length > 0;
  }

  /** Sends one length-prefixed frame. */
  writeFrame(frame: Uint8Array): void {
    this.write(encodeFrames.single(frame).subarray());
  }

  /** No more frames follow: from here on the bytes belong to whoever reads the stream. */
  startBytes(): void {
    this.#headOpen = false;
    const rest = this.#head;
    this.#head = Buffer.alloc(0);
    if (rest.length > 0) this.#deliver(rest);
    if (this.#ended) this.push(null);
  }

  #take(chunk: Uint8Array): void {
    if (this.destroyed) return;
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (!this.#headOpen) return this.#deliver(bytes);
    this.#head = Buffer.concat([this.#head, bytes]);
    this.#readHead();
    if (this.#headOpen && this.#head.length > highWaterMark) this.destroy(tooMuch());
  }

  #deliver(bytes: Buffer): void {
    // Deferred, because a pause inside the dispatch of a running resume() is undone by libp2p when that returns.
    if (!this.push(bytes)) queueMicrotask(() => this.#stop());
  }

  #takeEnd(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#frameWait?.reject(connectionLost());
    if (!this.#headOpen) this.push(null);
    if (this.#stream.status !== 'open' && this.#stream.status !== 'closing' && !this.writableEnded) {
      this.destroy(connectionLost());
    }
  }

  #readHead(): void {
    const wait = this.#frameWait;
    if (wait === undefined) return;
    const prefix = readPrefix(this.#head);
    if (prefix === 'incomplete') return;
    if (prefix === 'broken' || prefix.length > wait.bytesMax) return wait.reject(tooMuch());
    const end = prefix.bytes + prefix.length;
    if (this.#head.length < end) return;
    wait.resolve(Uint8Array.from(this.#head.subarray(prefix.bytes, end)));
    this.#frameWait = undefined;
    this.#head = this.#head.subarray(end);
    if (wait.isLast) this.startBytes();
  }

  #stop(): void {
    if (this.#stopped || this.#stream.readStatus !== 'readable' || this.readableLength === 0) return;
    this.#stopped = true;
    this.#stream.pause();
  }

  override _read(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    queueMicrotask(() => {
      if (!this.#stopped && this.#stream.readStatus === 'paused') this.#stream.resume();
    });
  }

  override _write(chunk: Uint8Array, _encoding: string, done: Done): void {
    this.#send(chunk, done);
  }

  override _writev(chunks: {chunk: Uint8Array; encoding: string}[], done: Done): void {
    this.#send(Buffer.concat(chunks.map(({chunk}) => chunk)), done);
  }

  #send(bytes: Uint8Array, done: Done): void {
    const stream = this.#stream;
    try {
      if (stream.send(bytes)) return done();
    } catch (error) {
      return done(asError(error));
    }
    // Not stream.onDrain(): it waits only the first time it is used.
    const finish = (error?: Error): void => {
      stream.removeEventListener('drain', onDrain);
      stream.removeEventListener('close', onClose);
      done(error);
    };
    const onDrain = (): void => finish();
    const onClose = (event: {error?: Error}): void => finish(event.error ?? connectionLost());
    stream.addEventListener('drain', onDrain);
    stream.addEventListener('close', onClose);
  }

  override _final(done: Done): void {
    void this.#closeInto(done);
  }

  async #closeInto(done: Done): Promise<void> {
    let failure: Error | undefined;
    try {
      await this.#stream.close();
    } catch (error) {
      failure = asError(error);
    }
    done(failure);
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#frameWait?.reject(error ?? connectionLost());
    const {status} = this.#stream;
    if (status === 'open' || status === 'closing') this.#stream.abort(error ?? new Error('the stream is not needed'));
    done(error);
  }

  /**
   * Part of a socket, for node:http: end, and destroy when everything is through. The stream destroys itself when the
   * peer has ended too; doing it now would reset the stream and so cut what the peer has not read yet.
   */
  destroySoon(): void {
    if (this.writable) this.end();
    this.resume();
  }

  /** Parts of a socket that mean nothing here; node:http calls them. */
  setTimeout(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

function readPrefix(bytes: Buffer): {bytes: number; length: number} | 'incomplete' | 'broken' {
  let length = 0;
  for (let index = 0; index < prefixBytesMax; index++) {
    const byte = bytes[index];
    if (byte === undefined) return 'incomplete';
    length |= (byte & 0x7f) << (7 * index);
    if (byte < 0x80) return {bytes: index + 1, length};
  }
  return 'broken';
}

function connectionLost(): Error {
  return Object.assign(new Error('the stream to the other node ended'), {code: 'ECONNRESET'});
}

function tooMuch(): Fault {
  return new Fault('PEER_FAILED', 'the other node sent a frame that is larger than agreed');
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
