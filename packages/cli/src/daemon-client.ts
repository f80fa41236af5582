import type {IncomingMessage, RequestOptions} from 'node:http';
import {describeError, Fault} from '@hearsay/core';
import type {FaultCode} from '@hearsay/core';
import type {z} from 'zod';
import {problemSchema, statusSchema} from './daemon-reports.ts';

/** A listing is answered from memory; a stop may wait for running requests to end. */
const answerMsMax = {listing: 10_000, stop: 60_000};

interface Question {
  readonly method: 'GET' | 'POST';
  /** JSON. */
  readonly body?: string;
}

interface Reply {
  readonly status: number;
  readonly contentType: string;
  /** Where it sends whoever asks: nobody follows, because the key is for the host that was named. */
  readonly location: string | undefined;
  readonly text: string;
}

export interface Answered<T> {
  /** What the daemon said, for `--json`. */
  readonly json: unknown;
  readonly report: T;
}

/**
 * Speaks to the admin API of the daemon at a URL. Faults: PEER_FAILED when no hearsay is there, else what it
 * answered.
 */
export class DaemonClient {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  /** The key is for a daemon that wants one. */
  constructor(url: string, key?: string) {
    this.#url = url;
    this.#headers = key === undefined ? {} : {authorization: `Bearer ${key}`};
  }

  async list<T>(path: string, schema: z.ZodType<T>): Promise<Answered<T>> {
    return this.#ask(path, schema, {method: 'GET'}, answerMsMax.listing);
  }

  /** As `list`, but sends a JSON body. */
  async post<T>(path: string, body: unknown, schema: z.ZodType<T>): Promise<Answered<T>> {
    return this.#ask(path, schema, {method: 'POST', body: JSON.stringify(body)}, answerMsMax.stop);
  }

  async #ask<T>(path: string, schema: z.ZodType<T>, question: Question, limitMs: number): Promise<Answered<T>> {
    const reply = await this.#send(path, question, limitMs);
    const {status, text} = reply;
    const json = parseJson(text);
    const parsed = schema.safeParse(json);
    if (status === 200 && parsed.success) return {json, report: parsed.data};
    const problem = problemSchema.safeParse(json);
    if (status === 401 && problem.success) {
      const message = `the daemon at ${this.#url} wants a key: set HEARSAY_KEY to one that it knows`;
      throw new Fault('BAD_CONFIG', message, {details: {status}});
    }
    // A 404 of anything else on this port must not read as "no such model" (R72).
    const isOurs = status === 401 || status === 403; // before anything else is told; the message says what is needed
    if (status === 200 || !problem.success || !(isOurs || (await this.#isHearsay()))) throw this.#foreign(reply);
    throw new Fault(codeOf(status), problem.data.error.message, {details: {status}});
  }

  async #isHearsay(): Promise<boolean> {
    const {text} = await this.#send('/hearsay/v1/status', {method: 'GET'}, answerMsMax.listing);
    return statusSchema.safeParse(parseJson(text)).success;
  }

  async #send(path: string, {method, body}: Question, limitMs: number): Promise<Reply> {
    const headers = {...this.#headers, ...(body !== undefined && {'content-type': 'application/json'})};
    const signal = AbortSignal.timeout(limitMs);
    try {
      return await exchange(`${this.#url}${path}`, {method, headers, signal}, body);
    } catch (cause) {
      if (!signal.aborted) throw this.#unreachable(cause);
      throw new Fault('TIMED_OUT', `the daemon at ${this.#url} did not answer within ${limitMs / 1000} s`, {cause});
    }
  }

  #unreachable(cause: unknown): Fault {
    const reason = cause instanceof Error && cause.cause !== undefined ? cause.cause : cause;
    const why = describeError(reason);
    const message = isAboutCertificate(reason)
      ? `what answers at ${this.#url} shows a certificate that is not trusted here (${why}). Use a name that is in it ` +
        '(--host), and if no known authority has signed it, set NODE_EXTRA_CA_CERTS to the file of gateway.tls_cert'
      : `cannot reach a daemon at ${this.#url} (${why}); start one with: hearsay serve`;
    return new Fault('PEER_FAILED', message, {cause});
  }

  #foreign({status, contentType, location}: Reply): Fault {
    const what = location === undefined ? contentType.slice(0, 80) : `which sends to ${location.slice(0, 200)}`;
    const message =
      `something answers at ${this.#url}, but it is not hearsay (HTTP ${status}, ${what}). ` +
      'Name the right address with --host or HEARSAY_HOST, or start a daemon with: hearsay serve';
    return new Fault('PEER_FAILED', message, {details: {status}});
  }
}

/** Not by `fetch`: loading that takes 35 ms of processor time, which is a quarter of a short command; this takes 8. */
async function exchange(url: string, options: RequestOptions, body: string | undefined): Promise<Reply> {
  const {request} = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http');
  const outgoing = request(url, options);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('response', resolve).on('error', reject).end(body);
    // After a response nobody hears this any more; before one it is an end without an error, as of a 101.
    outgoing.on('close', () => reject(new Error('it ended the connection without an answer')));
  });
  const {statusCode: status = 0, headers} = response;
  let text = '';
  for await (const part of response.setEncoding('utf8')) text += String(part);
  const {'content-type': contentType = 'no content type', location} = headers;
  return {status, contentType, location, text};
}

/** Node's codes for a certificate that it does not accept, as OpenSSL names them, and its own for a wrong name. */
function isAboutCertificate(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /CERT|LEAF_SIGNATURE|ISSUER/u.test(String(error.code));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON: no schema accepts it
  }
}

/** The kind of a failure from the HTTP status that the gateway gave it. */
function codeOf(status: number): FaultCode {
  if (status === 400) return 'BAD_REQUEST';
  if (status === 401 || status === 403) return 'FORBIDDEN';
  if (status === 404) return 'MODEL_NOT_FOUND';
  if (status === 429 || status === 503) return 'OVERLOADED';
  if (status === 408 || status === 504) return 'TIMED_OUT';
  return 'INTERNAL';
}
