import type {JsonObject} from './json.ts';
import {plainPath} from './plain-path.ts';
import type {Problem} from './problem.ts';
import {remembered} from './remembered.ts';

/** How one API writes an error: its status there and the body. */
export interface ErrorForm {
  /** The header in which clients of this API look for the id of the request. */
  readonly idHeader: string;
  readonly status: (problem: Problem) => number;
  readonly body: (problem: Problem, requestId: string | undefined) => JsonObject;
}

export const openAiErrors: ErrorForm = {
  idHeader: 'x-request-id',
  status: ({status}) => status,
  body: ({message, type, code, param, metadata, extra}) => ({
    error: {...extra, message, type, param: param ?? null, code, ...(metadata ? {metadata} : {})},
  }),
};

/** Anthropic's own status for "everybody is busy": its clients wait and ask again (facts: client-apis §3). */
const overloadedStatus = 529;

export const anthropicErrors: ErrorForm = {
  idHeader: 'request-id',
  status: problem => (isOverload(problem) ? overloadedStatus : problem.status),
  body: (problem, requestId) => ({
    type: 'error',
    error: {
      type: anthropicType(problem),
      message: anthropicMessage(problem),
      ...(problem.metadata ? {metadata: problem.metadata} : {}),
    },
    ...(requestId === undefined ? {} : {request_id: requestId}),
  }),
};

export const ollamaErrors: ErrorForm = {
  idHeader: 'x-request-id',
  status: problem => (isFull(problem) ? 503 : problem.status),
  body: problem => ({error: isFull(problem) ? `${ollamaBusy} (${problem.message})` : problem.message}),
};

/** Ollama's own words and status for a full queue; its clients look for both (R111). */
const ollamaBusy = 'server busy, please try again.  maximum pending requests exceeded';

function isFull({status}: Problem): boolean {
  return status === 429;
}

/** Pure: the form of an error that came before its operation was known, from the path and the client's headers. */
export function errorFormFor(url: string, headers: Readonly<Record<string, unknown>>): ErrorForm {
  const form = formOf(url);
  return form === openAiErrors && headers['anthropic-version'] !== undefined ? anthropicErrors : form;
}

const formOf = remembered((url: string): ErrorForm => {
  const path = plainPath(url);
  if (path.startsWith('/api/')) return ollamaErrors;
  return /^(?:\/v1)?\/messages(?:[/?]|$)/u.test(path) ? anthropicErrors : openAiErrors;
});

/** Nobody can take it now, though somebody could later. */
function isOverload({status, code}: Problem): boolean {
  return status === 503 && code !== 'engine_missing';
}

const anthropicTypes: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [504, 'timeout_error'],
]);

function anthropicType(problem: Problem): string {
  if (isOverload(problem)) return 'overloaded_error';
  const type = anthropicTypes.get(problem.status);
  return type ?? (problem.status < 500 ? 'invalid_request_error' : 'api_error');
}

/** The words by which clients see that they must shorten a conversation. */
function anthropicMessage({code, message, extra}: Problem): string {
  if (code !== 'context_length_exceeded') return message;
  const {n_prompt_tokens: tokens, n_ctx: context} = extra ?? {};
  return typeof tokens === 'number' && typeof context === 'number'
    ? `prompt is too long: ${tokens} tokens > ${context} maximum`
    : `prompt is too long: ${message}`;
}
