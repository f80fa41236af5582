import {isRequestMistake} from '@hearsay/core';
import type {ServerEvent} from './event-stream.ts';
import {isObject, parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import type {Problem} from './problem.ts';

/** What is shown of an error that is no JSON object. */
const rawTextMax = 500;

/**
 * Pure: an error of llama-server as OpenAI clients expect it (facts: client-apis §2.1). Status, message, type and
 * further fields stay what they were; `code` becomes a string, and clients are told not to repeat what would fail
 * again.
 */
export function problemFromUpstream(status: number, text: string): Problem {
  const body = parseObject(text);
  const error = body?.['error'];
  if (isObject(error)) return fromErrorObject(status, error);
  const message = textOf(error) || text.trim().slice(0, rawTextMax);
  return {
    ...outline(status, `the engine answered with status ${status}${message === '' ? '' : `: ${message}`}`),
    ...(body ? {extra: without(body, ['error'])} : {}),
  };
}

/** Pure: an error event that came inside a stream whose status had already been 200. */
export function problemFromEvent(event: JsonObject): Problem | undefined {
  const error = event['error'];
  if (error === undefined || error === null) return undefined;
  const code = isObject(error) ? error['code'] : undefined;
  const isStatus = typeof code === 'number' && Number.isInteger(code) && code >= 400 && code < 600;
  return problemFromUpstream(isStatus ? code : 502, JSON.stringify({error}));
}

/**
 * Pure: as `problemFromEvent`, for the dialects in which llama-server names its events: there the error is sent bare
 * (facts: client-apis §3).
 */
export function problemFromErrorEvent({name, data}: ServerEvent): Problem | undefined {
  if (name !== 'error' && !data.startsWith('{"error"')) return undefined;
  const event = parseObject(data);
  if (event === undefined) return outline(502, `the engine failed: ${data.slice(0, rawTextMax)}`);
  return problemFromEvent(isObject(event['error']) ? event : {error: event});
}

/** Its 500 for a text that is too long to be embedded; the advice in it is for whoever starts llama-server. */
const tooLarge = /^(input \(\d+ tokens\) is too large) to process\. increase .*\(current batch size: (\d+)\)$/u;

function fromErrorObject(status: number, error: JsonObject): Problem {
  const [, input, most] = tooLarge.exec(textOf(error['message'])) ?? [];
  if (input !== undefined) {
    const message = `${input} for this model, which reads at most ${most} tokens at once (batch size: ${most}); shorten it`;
    return {...outline(400, message), code: 'context_length_exceeded'};
  }
  const message = textOf(error['message']);
  if (status === 500 && isRequestMistake(message)) return outline(400, message);
  const basis = outline(status, message || `the engine answered with status ${status}`);
  const type = textOf(error['type']) || basis.type;
  const param = textOf(error['param']);
  return {
    ...basis,
    type,
    code: codeOf(type, error['code']),
    ...(param === '' ? {} : {param}),
    extra: without(error, ['type', 'code', 'message', 'param', 'metadata']),
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** llama-server gives its status as the code; its type says what that means. */
function codeOf(type: string, code: unknown): string {
  if (type === 'exceed_context_size_error') return 'context_length_exceeded';
  return textOf(code) || type;
}

function outline(upstreamStatus: number, message: string): Problem {
  const status = normalStatus(upstreamStatus);
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  return {kind: 'problem', status, type, code: type, message, headers: retryHeaders(status)};
}

/** 501 means that this model cannot do it: the request is at fault, and SDKs would repeat a 501. */
function normalStatus(status: number): number {
  if (status === 501) return 400;
  return status >= 400 && status < 600 ? status : 502;
}

/** llama-server's 500 is nearly always an input it cannot use; its 503 passes. */
function retryHeaders(status: number): Readonly<Record<string, string>> {
  if (status === 503) return {'retry-after': '1'};
  return status === 500 ? {'x-should-retry': 'false'} : {};
}

function without(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}
