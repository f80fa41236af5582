import {nameLengthMax} from '@hearsay/core';
import type {Caller, Capability, ClientRequest, Endpoint, RequestId} from '@hearsay/core';
import {isObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {badRequest, isProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {readPolicy} from './read-policy.ts';

/** What the client asked for, ready to be dispatched. */
export interface CompletionCall {
  readonly kind: 'call';
  /** The client wants the answer as it comes; otherwise it gets one object. */
  readonly stream: boolean;
  readonly request: ClientRequest;
}

export interface CallFrame {
  readonly id: RequestId;
  readonly endpoint: Endpoint;
  /** `x-hearsay-policy`, as sent. */
  readonly policy: string | undefined;
  readonly traceparent: string | undefined;
  /** The application, when it gave a key. */
  readonly caller?: Caller | undefined;
}

/**
 * Pure: checks what the gateway and the choice of a node need to know; the rest of the body is llama-server's matter.
 */
export function readCompletion(bytes: Uint8Array, frame: CallFrame): CompletionCall | Problem {
  const body = parseBody(bytes);
  if (body === undefined)
    return badRequest(`the body is not a JSON object${bytes.length === 0 ? ': it is empty' : ''}`);
  const complaint = complain(body, frame.endpoint);
  if (complaint !== undefined) return badRequest(complaint.message, {param: complaint.param});
  const asked = readPolicy(frame.policy, body);
  if (isProblem(asked)) return asked;
  const {provider: _, ...sent} = body; // ours, not llama-server's
  const stream = body['stream'] === true;
  const {model} = body;
  return {
    kind: 'call',
    stream,
    request: {
      id: frame.id,
      model: typeof model === 'string' ? model : '',
      endpoint: frame.endpoint,
      needs: needsOf(body, frame.endpoint),
      ...asked,
      caller: frame.caller,
      body: Buffer.from(JSON.stringify(stream ? sent : streamed(sent))),
      traceparent: readTraceparent(frame.traceparent),
    },
  };
}

function parseBody(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes)); // drops a byte order mark
    return isObject(value) ? value : undefined;
  } catch {
    return undefined; // a 400 either way: what the parser says quotes the prompt
  }
}

/** The first thing that no node could make sense of. */
function complain(
  body: JsonObject,
  endpoint: Endpoint,
): {readonly message: string; readonly param: string} | undefined {
  const {model, stream, messages, prompt} = body;
  if (endpoint === '/v1/chat/completions' && !Array.isArray(messages)) {
    return {message: 'messages is missing or is not a list', param: 'messages'};
  }
  if (endpoint === '/v1/completions' && (prompt === undefined || prompt === null)) {
    return {message: 'prompt is missing', param: 'prompt'};
  }
  if (model !== undefined && model !== null && typeof model !== 'string') {
    return {message: 'model is not a string', param: 'model'};
  }
  if (typeof model === 'string' && model.length > nameLengthMax) {
    return {message: `model is longer than ${nameLengthMax} characters`, param: 'model'};
  }
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') {
    return {message: 'stream is neither true nor false', param: 'stream'};
  }
  return undefined;
}

/**
 * The body for llama-server when the client wants one object: streamed all the same, so that a cancel frees the slot.
 */
function streamed(body: JsonObject): JsonObject {
  const options = body['stream_options'];
  return {...body, stream: true, stream_options: {...(isObject(options) ? options : {}), include_usage: true}};
}

function needsOf(body: JsonObject, endpoint: Endpoint): readonly Capability[] {
  const needs: Capability[] = [endpoint === '/v1/chat/completions' ? 'chat' : 'completion'];
  const {tools, messages} = body;
  if (Array.isArray(tools) && tools.length > 0) needs.push('tools');
  if (Array.isArray(messages) && messages.some(hasImage)) needs.push('vision');
  return needs;
}

function hasImage(message: unknown): boolean {
  const content = isObject(message) ? message['content'] : undefined;
  return Array.isArray(content) && content.some(part => isObject(part) && part['type'] === 'image_url');
}

/** W3C trace context; anything else is not passed on. */
function readTraceparent(text: string | undefined): string | undefined {
  return text !== undefined && /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/u.test(text) ? text : undefined;
}
