import {createHash} from 'node:crypto';
import type {IncomingMessage, ServerResponse} from 'node:http';
import type {Clock} from '@hearsay/core';
import type {ErrorForm} from './error-form.ts';
import {callerIn} from './identify.ts';
import {badRequest, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {headerOf} from './request-headers.ts';

/** Longest key: clients send identifiers, not texts. */
const keyLengthMax = 255;

/** Answers that are kept: a retry comes within minutes, and there are not more clients than this. */
const answersMax = 256;

/** Of one answer; longer ones run, but a second request with their key is told to wait. */
const answerBytesMax = 256 * 1024;

/** Of all answers together. */
const totalBytesMax = 16 * 1024 * 1024;

/** How long a finished answer can be had again. */
const keptMs = 10 * 60_000;

/** A second reader that is so far behind is cut off, so that its backlog does not grow without limit. */
const backlogBytesMax = 1024 * 1024;

/** What may become of a request with a key: nobody has sent it before, or somebody has. */
export type Join = Problem | {readonly kind: 'first'} | {readonly kind: 'attached'; readonly ended: Promise<void>};

interface Kept {
  readonly fingerprint: string;
  readonly followers: Set<ServerResponse>;
  /** Undefined: it has grown too long to be kept. */
  chunks: Buffer[] | undefined;
  bytes: number;
  head: {readonly status: number; readonly headers: readonly (readonly [string, string | number])[]} | undefined;
  /** When it was whole; undefined while it runs. */
  endedAtMs: number | undefined;
}

/**
 * Answers by `Idempotency-Key`, so that a request that a client sends twice runs once: while the first runs, the second
 * hears the same; afterwards it gets the same again. Only whole answers are kept: what failed may be tried again. Each
 * gateway keeps its own, so that it is best effort: the same key at another node is another request.
 */
export class IdempotentAnswers {
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes the request in: `first` runs and is recorded, `attached` is answered from here. */
  join(request: IncomingMessage, response: ServerResponse, body: Uint8Array, errors: ErrorForm): Join {
    const key = headerOf(request, 'idempotency-key');
    if (key === undefined || key === '') return {kind: 'first'};
    if (key.length > keyLengthMax) return badRequest(`Idempotency-Key is longer than ${keyLengthMax} characters`);
    this.#forgetOld();
    const scope = JSON.stringify([callerIn(request)?.name, key]);
    const fingerprint = fingerprintOf(request, body);
    const kept = this.#kept.get(scope);
    if (kept === undefined) {
      this.#record(scope, fingerprint, response, errors);
      return {kind: 'first'};
    }
    if (kept.fingerprint !== fingerprint) return otherBody;
    return kept.chunks ? {kind: 'attached', ended: follow(kept, response)} : tooLong;
  }

  #record(scope: string, fingerprint: string, response: ServerResponse, errors: ErrorForm): void {
    if (this.#kept.size >= answersMax && !this.#forgetOldest()) return;
    const kept: Kept = {
      fingerprint,
      followers: new Set(),
      chunks: [],
      bytes: 0,
      head: undefined,
      endedAtMs: undefined,
    };
    this.#kept.set(scope, kept);
    tee(response, chunk => this.#take(kept, response, chunk));
    response.once('close', () => {
      const isWhole = response.writableFinished && response.statusCode === 200 && !endsInError(kept);
      if (isWhole) kept.endedAtMs = this.#clock.monotonicMs();
      if (!isWhole || !kept.chunks) this.#kept.delete(scope);
      for (const follower of kept.followers) endFollower(follower, response.writableFinished, errors);
      kept.followers.clear();
    });
  }

  #take(kept: Kept, response: ServerResponse, chunk: Buffer): void {
    kept.head ??= headOf(response);
    for (const follower of kept.followers) {
      sendHead(follower, kept.head);
      if (follower.writableLength > backlogBytesMax) follower.destroy();
      else if (chunk.length > 0) follower.write(chunk);
    }
    kept.bytes += chunk.length;
    kept.chunks?.push(chunk);
    if (kept.bytes > answerBytesMax) kept.chunks = undefined;
    while (this.#totalBytes() > totalBytesMax && this.#forgetOldest());
  }

  #totalBytes(): number {
    return [...this.#kept.values()].reduce((sum, {chunks, bytes}) => sum + (chunks ? bytes : 0), 0);
  }

  #forgetOld(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [scope, {endedAtMs = Infinity}] of this.#kept) if (endedAtMs + keptMs <= nowMs) this.#kept.delete(scope);
  }

  /** The oldest that has ended; false: all of them run. */
  #forgetOldest(): boolean {
    const oldest = [...this.#kept].find(([, {endedAtMs}]) => endedAtMs !== undefined);
    return oldest !== undefined && this.#kept.delete(oldest[0]);
  }
}

const otherBody: Problem = badRequest('this Idempotency-Key was used with another request; take a new one', {
  status: 422,
  code: 'idempotency_key_reused',
});

const tooLong: Problem = badRequest('the request with this Idempotency-Key still runs, and its answer is too long', {
  status: 409,
  code: 'idempotency_conflict',
  headers: {'retry-after': '5'},
});

const gone: Problem = badRequest('the first request with this Idempotency-Key was broken off; send it again', {
  status: 409,
  code: 'idempotency_conflict',
  headers: {'retry-after': '1'},
});

/** All that makes one request differ from another: where it goes, what it says, where it may run. */
function fingerprintOf(request: IncomingMessage, body: Uint8Array): string {
  const head = [request.url ?? '', headerOf(request, 'x-hearsay-policy') ?? ''];
  return createHash('sha256')
    .update(`${JSON.stringify(head)}\n`)
    .update(body)
    .digest('hex');
}

/** Gives the second reader what there is, and the rest as it comes. Resolves when it has all, or has gone. */
function follow(kept: Kept, response: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    response.once('close', () => {
      kept.followers.delete(response);
      resolve();
    });
    if (kept.head) {
      sendHead(response, kept.head);
      for (const chunk of kept.chunks ?? []) response.write(chunk);
    }
    if (kept.endedAtMs === undefined) kept.followers.add(response);
    else response.end();
  });
}

/** Headers of a connection are not those of an answer. */
const ownHeaders: ReadonlySet<string> = new Set(['connection', 'date', 'keep-alive', 'transfer-encoding']);

function headOf(response: ServerResponse): NonNullable<Kept['head']> {
  const headers = Object.entries(response.getHeaders()).flatMap(([name, value]) =>
    ownHeaders.has(name) || value === undefined || Array.isArray(value) ? [] : [[name, value] as const],
  );
  return {status: response.statusCode, headers};
}

function sendHead(response: ServerResponse, {status, headers}: NonNullable<Kept['head']>): void {
  if (response.headersSent || response.destroyed) return;
  for (const [name, value] of headers) response.setHeader(name, value);
  response.setHeader('idempotent-replayed', 'true');
  response.writeHead(status);
}

function endFollower(follower: ServerResponse, isWhole: boolean, errors: ErrorForm): void {
  if (follower.destroyed) return;
  if (isWhole) follower.end();
  else if (follower.headersSent) follower.destroy();
  else sendProblem(follower, gone, errors);
}

/** A stream that failed after its head says so in its last event, in the form of its dialect. */
function endsInError({chunks}: Kept): boolean {
  const tail = Buffer.concat(chunks ?? []).subarray(-tailBytesMax);
  return /(?:^|\n)(?:(?:data: )?\{"error":|event: (?:error|response\.failed)\n)/u.test(tail.toString());
}

/** Longer than the last event of any stream that failed. */
const tailBytesMax = 16 * 1024;

/** Shows everything that is written to a response. */
function tee(response: ServerResponse, see: (chunk: Buffer) => void): void {
  const write = response.write.bind(response);
  const end = response.end.bind(response);
  response.write = (chunk: unknown, ...rest: readonly unknown[]) => {
    const sent: boolean = Reflect.apply(write, undefined, [chunk, ...rest]);
    see(bytesOf(chunk));
    return sent;
  };
  response.end = (chunk?: unknown, ...rest: readonly unknown[]) => {
    Reflect.apply(end, undefined, [chunk, ...rest]);
    see(bytesOf(chunk));
    return response;
  };
}

function bytesOf(chunk: unknown): Buffer {
  if (typeof chunk === 'string') return Buffer.from(chunk);
  return chunk instanceof Uint8Array ? Buffer.from(chunk) : Buffer.alloc(0);
}
