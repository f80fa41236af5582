import {ByteTail, describeError, Fault} from '@hearsay/core';
import type {Lease, SignedRecord, WorkResponse} from '@hearsay/core';

/** Looked at for an error at the beginning; a first event that is longer is none. */
const peekBytesMax = 4096;

/**
 * The bytes of a run together with the lease they come from. The lease ends with the bytes, however they end: read to
 * the end, broken, returned early, or the client's signal. Not a generator, because a generator that was never
 * started never runs its `finally`, and one that waits cannot be returned from.
 */
export class LeasedBody implements AsyncIterableIterator<Uint8Array> {
  onRecord: (record: SignedRecord) => void = () => undefined;
  onEnd: (error: unknown) => void = () => undefined;
  /** The last bytes that were read, as text, in which llama-server tells what it counted. */
  readonly tail: ByteTail = new ByteTail();
  /** The answer has come to its end. */
  onWhole: (() => void) | undefined;
  /** Sees every piece of the answer as it passes by. */
  onBytes: ((bytes: Uint8Array) => void) | undefined;
  readonly #lease: Lease;
  readonly #nodeName: string;
  readonly #signal: AbortSignal;
  readonly #abort: () => void;
  #response: WorkResponse | undefined;
  #source: AsyncIterator<Uint8Array> | undefined;
  #first: Uint8Array | undefined;
  #ended = false;

  constructor(lease: Lease, nodeName: string, signal: AbortSignal) {
    this.#lease = lease;
    this.#nodeName = nodeName;
    this.#signal = signal;
    this.#abort = () => void this.#end(signal.reason);
    signal.addEventListener('abort', this.#abort, {once: true});
    if (signal.aborted) this.#abort();
  }

  /** Waits for the first bytes that say something. Throws when there are none, or when it has ended before them. */
  async begin(response: WorkResponse): Promise<void> {
    this.#response = response;
    this.#source = response.body[Symbol.asyncIterator]();
    for (;;) {
      const {done, value} = await this.#source.next();
      if (this.#ended) throw new Fault('CANCELLED', 'the client went away');
      if (done === true) throw new Fault('ENGINE_FAILED', `${this.#nodeName} sent an empty answer`);
      this.#first = value;
      this.tail.add(value);
      if (!isSilence(value)) return;
    }
  }

  /** The message when the answer opens with an error, or is one, which llama-server and others send with status 200. */
  firstEventError(): string | undefined {
    if (!this.#first || this.#first.length > peekBytesMax) return undefined;
    const text = new TextDecoder().decode(this.#first);
    // In the dialects that name their events the error stands bare.
    const event = /^(?:event: error\ndata: |(?:data: )?(?=\{\s*"error"))(\{.*)/u.exec(text)?.[1];
    return event === undefined ? undefined : (/"message"\s*:\s*"([^"]*)"/u.exec(event)?.[1] ?? 'the engine failed');
  }

  /** How the answer begins. */
  firstText(): string {
    return new TextDecoder().decode(this.#first?.subarray(0, peekBytesMax));
  }

  /** Reads what is left as text, up to a limit, and ends the run. */
  async readText(bytesMax: number): Promise<string> {
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of this) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > bytesMax) break;
    }
    return Buffer.concat(chunks).subarray(0, bytesMax).toString('utf8');
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    const first = this.#first;
    if (first) {
      this.#first = undefined;
      this.onBytes?.(first);
      return {done: false, value: first};
    }
    if (this.#ended || !this.#source) return {done: true, value: undefined};
    try {
      const result = await this.#source.next();
      if (result.done !== true) {
        this.tail.add(result.value);
        this.onBytes?.(result.value);
        return result;
      }
    } catch (cause) {
      const fault = this.#signal.aborted
        ? new Fault('CANCELLED', 'the client went away', {cause})
        : new Fault('INTERRUPTED', `${this.#nodeName} broke off: ${describeError(cause)}`, {cause});
      await this.#end(fault);
      throw fault;
    }
    const record = this.#response?.record();
    if (record) this.onRecord(record);
    this.onWhole?.();
    await this.#end(undefined);
    return {done: true, value: undefined};
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    if (!this.#ended) await this.#end(new Fault('CANCELLED', 'nobody reads the answer any more'));
    return {done: true, value: undefined};
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #end(error: unknown): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#signal.removeEventListener('abort', this.#abort);
    this.onEnd(error);
    await this.#lease[Symbol.asyncDispose]();
  }
}

/** llama-server writes comments while it reads a long prompt. They are no output; who asked keeps its client alive. */
function isSilence(chunk: Uint8Array): boolean {
  return (
    chunk[0] === colon && chunk.length <= commentBytesMax && /^(?::[^\n]*\n+)+$/u.test(Buffer.from(chunk).toString())
  );
}

const colon = 0x3a;

/** What is longer says something. */
const commentBytesMax = 256;
