import type {IncomingMessage} from 'node:http';
import {promisify} from 'node:util';
import {brotliDecompress, gunzip, inflate, zstdDecompress} from 'node:zlib';
import {Fault} from '@hearsay/core';
import type {Clock} from '@hearsay/core';
import type {HeldBodies} from './held-bodies.ts';
import {badRequest, problemFrom} from './problem.ts';
import type {Problem} from './problem.ts';

export interface BodyRules {
  readonly clock: Clock;
  /** As sent, and as decoded. */
  readonly bodyBytesMax: number;
  readonly bodies: HeldBodies;
}

/** Longest pause within an upload: slow links send something more often than that. */
const uploadPauseMsMax = 60_000;

type Decode = (bytes: Uint8Array, options: {readonly maxOutputLength: number}) => Promise<Uint8Array>;

/** Content encodings that clients use for requests (C21: some send zstd without being asked to). */
const decoders: ReadonlyMap<string, Decode | undefined> = new Map<string, Decode | undefined>([
  ['identity', undefined],
  ['', undefined],
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
  ['zstd', promisify(zstdDecompress)],
]);

/**
 * The whole body of a request, decoded; of any content type. Neither what is sent nor what it decodes to may be larger
 * than `bytesMax`. Throws CANCELLED when the client goes away before the end.
 */
export async function readBody(request: IncomingMessage, rules: BodyRules): Promise<Uint8Array | Problem> {
  const {bodyBytesMax, bodies} = rules;
  const encoding = (request.headers['content-encoding'] ?? '').trim().toLowerCase();
  if (!decoders.has(encoding)) return unknownEncoding(encoding);
  if (Number(request.headers['content-length'] ?? 0) > bodyBytesMax) return tooLarge(bodyBytesMax);
  const received = await receive(request, rules);
  const decode = decoders.get(encoding);
  if (decode === undefined || !(received instanceof Uint8Array)) return received;
  try {
    const decoded = await decode(received, {maxOutputLength: bodyBytesMax});
    return bodies.take(request, decoded.length) ? decoded : tooMany();
  } catch (error) {
    if (error instanceof RangeError) return tooLarge(bodyBytesMax); // ERR_BUFFER_TOO_LARGE
    return badRequest(`the body cannot be decoded as ${encoding}`);
  }
}

/** Whatever comes after the limit is not kept; Node reads and drops it once the answer has been sent. */
function receive(request: IncomingMessage, rules: BodyRules): Promise<Uint8Array | Problem> {
  const {clock, bodyBytesMax, bodies} = rules;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let restBytes = bodyBytesMax;
    let pause = watchPause();

    function watchPause(): Disposable {
      return clock.after(uploadPauseMsMax, () => end(() => resolve(tooSlow())));
    }
    /** Nothing of the body stays with the request, which lives until it is answered. */
    function end(settle: () => void): void {
      pause[Symbol.dispose]();
      request.removeListener('data', take);
      request.removeListener('end', whole);
      request.removeListener('error', broken);
      request.removeListener('close', gone);
      request.on('error', nobodyCares);
      settle();
    }
    function take(chunk: Buffer): void {
      restBytes -= chunk.length;
      if (restBytes < 0) return end(() => resolve(tooLarge(bodyBytesMax)));
      if (!bodies.take(request, chunk.length)) return end(() => resolve(tooMany()));
      chunks.push(chunk);
      pause[Symbol.dispose]();
      pause = watchPause();
    }
    function whole(): void {
      end(() => resolve(Buffer.concat(chunks)));
    }
    function broken(cause: Error): void {
      end(() => reject(new Fault('CANCELLED', 'the upload broke off', {cause})));
    }
    function gone(): void {
      end(() => reject(new Fault('CANCELLED', 'the client went away during its upload')));
    }
    request.on('data', take);
    request.on('end', whole);
    request.on('error', broken);
    request.on('close', gone);
  });
}

/** Whoever waits for the answer is told by the response; an error without a listener would end the daemon. */
function nobodyCares(): void {}

function unknownEncoding(encoding: string): Problem {
  const known = 'gzip, deflate, br, zstd';
  return badRequest(`content-encoding ${JSON.stringify(encoding.slice(0, 50))} is not supported; use one of ${known}`, {
    status: 415,
    code: 'unsupported_encoding',
    headers: {'accept-encoding': known},
  });
}

function tooLarge(bytesMax: number): Problem {
  return badRequest(
    `the body is larger than ${bytesMax / 1024 / 1024} MiB, as sent or as decoded (gateway.body_limit_mb)`,
    {
      status: 413,
      code: 'request_too_large',
    },
  );
}

function tooMany(): Problem {
  const message = 'this node holds as many large requests as it can; try again when some of them are answered';
  return problemFrom(new Fault('OVERLOADED', message, {details: {retryAfterMs: 1000}}));
}

/** Closes the connection: the rest of the upload may still come and would be taken for a request. */
function tooSlow(): Problem {
  return badRequest(`no byte of the body came for ${uploadPauseMsMax / 1000} s`, {
    status: 408,
    code: 'upload_timeout',
    headers: {connection: 'close'},
  });
}
