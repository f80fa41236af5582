import type {ServerResponse} from 'node:http';
import {describeError, Fault} from '@hearsay/core';
import type {FaultCode} from '@hearsay/core';
import type {ErrorForm} from './error-form.ts';
import {isObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {problemFromUpstream} from './upstream-problem.ts';

/** An error in OpenAI's terms, before it becomes a status with a body or an event in a stream, in the client's form. */
export interface Problem {
  readonly kind: 'problem';
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly message: string;
  readonly param?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Details of ours: `error.metadata`. */
  readonly metadata?: JsonObject;
  /** Further fields of an error object that llama-server made (R24). */
  readonly extra?: JsonObject;
}

/** The HTTP meaning of every fault; the only place that knows it. */
const meanings: Readonly<Record<FaultCode, Pick<Problem, 'status' | 'type' | 'code'>>> = {
  BAD_CONFIG: {status: 500, type: 'server_error', code: 'bad_config'},
  BAD_REQUEST: {status: 400, type: 'invalid_request_error', code: 'invalid_value'},
  FORBIDDEN: {status: 403, type: 'permission_error', code: 'forbidden'},
  MODEL_NOT_FOUND: {status: 404, type: 'invalid_request_error', code: 'model_not_found'},
  NODE_NOT_FOUND: {status: 404, type: 'invalid_request_error', code: 'node_not_found'},
  NO_CANDIDATE: {status: 503, type: 'server_error', code: 'no_candidate'},
  OVERLOADED: {status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded'},
  ENGINE_MISSING: {status: 503, type: 'server_error', code: 'engine_missing'},
  ENGINE_FAILED: {status: 502, type: 'server_error', code: 'bad_gateway'},
  INSTALL_FAILED: {status: 500, type: 'server_error', code: 'install_failed'},
  PEER_FAILED: {status: 502, type: 'server_error', code: 'bad_gateway'},
  INTERRUPTED: {status: 502, type: 'server_error', code: 'interrupted'},
  CANCELLED: {status: 499, type: 'invalid_request_error', code: 'cancelled'},
  TIMED_OUT: {status: 504, type: 'server_error', code: 'timeout'},
  BAD_FILE: {status: 500, type: 'server_error', code: 'bad_file'},
  ALREADY_RUNNING: {status: 500, type: 'server_error', code: 'already_running'},
  INTERNAL: {status: 500, type: 'server_error', code: 'internal_error'},
};

/** Faults that asking again cannot mend, with a status that clients would otherwise retry. */
const lasting: ReadonlySet<FaultCode> = new Set(['BAD_CONFIG', 'ENGINE_MISSING', 'INSTALL_FAILED', 'BAD_FILE']);

/** Clients ignore a longer Retry-After (facts: client-apis §2.3). */
const retryAfterSecondsMax = 60;

export function isProblem(value: unknown): value is Problem {
  return isObject(value) && value['kind'] === 'problem';
}

/** Something wrong with the request itself. */
export function badRequest(message: string, options: Partial<Omit<Problem, 'kind' | 'message'>> = {}): Problem {
  return {kind: 'problem', status: 400, type: 'invalid_request_error', code: 'invalid_value', message, ...options};
}

/** Anything thrown, as the client sees it. The message of a bug of ours stays in the log. */
export function problemFrom(error: unknown): Problem {
  if (!(error instanceof Fault)) {
    return {kind: 'problem', ...meanings.INTERNAL, message: 'hearsay has a bug here; its log tells more'};
  }
  const {code, details} = error;
  const metadata = cleanDetails(details);
  return {
    kind: 'problem',
    ...meanings[code],
    headers: retryHeaders(code, details),
    ...engineAnswer(details),
    message: describeError(error),
    ...paramOf(code, metadata),
    ...(Object.keys(metadata).length > 0 ? {metadata} : {}),
  };
}

/** To whoever comes when this node is about to end; the connection ends with it, so that the next goes elsewhere. */
export function shuttingDown(): Problem {
  const problem = problemFrom(endReason());
  return {...problem, status: 503, headers: {...problem.headers, connection: 'close'}};
}

/** What ends the answers that still run then. */
export function endReason(): Fault {
  return new Fault('INTERRUPTED', 'node is shutting down', {details: {retryAfterMs: 1000}});
}

/** What of the request is wrong. */
function paramOf(code: FaultCode, {param}: JsonObject): Pick<Problem, 'param'> {
  if (typeof param === 'string') return {param};
  return code === 'MODEL_NOT_FOUND' ? {param: 'model'} : {};
}

/** Sends the problem as the whole answer. Only before anything else has been sent. */
export function sendProblem(response: ServerResponse, problem: Problem, form: ErrorForm): void {
  sendJson(response, form.status(problem), problemBody(response, problem, form), problem.headers);
}

/** The problem in the client's form, with the id of the request where that form has one. */
export function problemBody(response: ServerResponse, problem: Problem, form: ErrorForm): JsonObject {
  const id = response.getHeader(form.idHeader);
  return form.body(problem, typeof id === 'string' ? id : undefined);
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: JsonObject | readonly JsonObject[],
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': bytes.length,
    ...headers,
  });
  response.end(bytes);
}

export function sendText(response: ServerResponse, text: string): void {
  const bytes = Buffer.from(text);
  response.writeHead(200, {'content-type': 'text/plain; charset=utf-8', 'content-length': bytes.length});
  response.end(bytes);
}

/** When every node has failed, the first one's own answer says more than a 502 of ours (R22, R24). */
function engineAnswer({status, body}: JsonObject): Partial<Problem> {
  return typeof status === 'number' && status >= 400 && typeof body === 'string'
    ? problemFromUpstream(status, body)
    : {};
}

function retryHeaders(code: FaultCode, details: JsonObject): Readonly<Record<string, string>> {
  if (lasting.has(code) || details['retryable'] === false) return {'x-should-retry': 'false'};
  const waitMs = details['retryAfterMs'];
  if (typeof waitMs === 'number' && waitMs >= 0) {
    return {'retry-after': String(Math.min(retryAfterSecondsMax, Math.max(1, Math.ceil(waitMs / 1000))))};
  }
  return code === 'NO_CANDIDATE' || code === 'OVERLOADED' ? {'retry-after': '1'} : {};
}

/** Most that one error says in its details; they are for people. */
const detailTextMax = 500;
const detailListMax = 64;
const detailDepthMax = 4;

/** Names of details that tell about this machine and not about the request. */
const privateDetail = /body|path|file|folder|director|command|argument|stderr|environment|secret|token|password|key$/iu;

/** Details without paths and secrets, and no larger than a person would read. */
function cleanDetails(details: JsonObject): JsonObject {
  const clean = cleanDetail(details, 0);
  return isObject(clean) ? clean : {};
}

function cleanDetail(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return isPath(value) ? undefined : value.slice(0, detailTextMax);
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value;
  if (depth >= detailDepthMax) return undefined;
  if (Array.isArray(value)) {
    return value
      .slice(0, detailListMax)
      .map((item: unknown) => cleanDetail(item, depth + 1))
      .filter(item => item !== undefined);
  }
  if (!isObject(value)) return undefined;
  const entries = Object.entries(value)
    .slice(0, detailListMax)
    .filter(([name]) => !privateDetail.test(name))
    .map(([name, item]) => [name, cleanDetail(item, depth + 1)] as const);
  return Object.fromEntries(entries.filter(([, item]) => item !== undefined));
}

function isPath(text: string): boolean {
  return /^(?:~?\/|[A-Za-z]:\\|\\\\|file:)/u.test(text);
}
