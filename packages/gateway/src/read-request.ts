import {nameLengthMax, routingHints} from '@hearsay/core';
import type {Capability, ClientRequest, Endpoint} from '@hearsay/core';
import {isObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {noObject} from './no-object.ts';
import type {RequestFrame} from './operation.ts';
import {badRequest, isProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {readPolicy} from './read-policy.ts';

/** A body that is a JSON object. In a wrapper, so that no client can pass one off as a problem. */
export interface JsonBody {
  readonly kind: 'body';
  readonly body: JsonObject;
}

/** What one request goes to, and with what. */
export interface Errand {
  readonly model: string;
  readonly endpoint: Endpoint;
  readonly needs: readonly Capability[];
  /** The JSON that the engine gets. */
  readonly body: JsonObject;
}

/** Pure: parses a body and checks what all JSON requests have in common: `model` and `stream`. */
export function readJson(bytes: Uint8Array): JsonBody | Problem {
  const body = parseBody(bytes);
  if (body === undefined) return noObject(bytes);
  const {model, stream} = body;
  if (model !== undefined && model !== null && typeof model !== 'string') {
    return badRequest('model is not a string', {param: 'model'});
  }
  const isLong = typeof model === 'string' ? longName(model) : undefined;
  if (isLong) return isLong;
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') {
    return badRequest('stream is neither true nor false', {param: 'stream'});
  }
  return {kind: 'body', body};
}

/** Pure: no model has such a long name, and no log should. */
export function longName(model: string): Problem | undefined {
  return model.length > nameLengthMax
    ? badRequest(`model is longer than ${nameLengthMax} characters`, {param: 'model'})
    : undefined;
}

/** Pure: the name that a body asks for; empty when it names none. */
export function modelIn({model}: JsonObject): string {
  return typeof model === 'string' ? model : '';
}

/** Pure: the request to dispatch; the body becomes bytes again. */
export function clientRequest(errand: Errand, frame: RequestFrame): ClientRequest | Problem {
  const {provider, ...sent} = errand.body; // ours, not llama-server's
  const hints = routingHints(sent, frame.header ?? noHeaders);
  return requestOf({...errand, body: Buffer.from(JSON.stringify(sent)), hints}, frame, provider);
}

/** Pure: as `clientRequest`, with a body that is bytes already. */
export function requestOf(
  errand: Pick<ClientRequest, 'model' | 'endpoint' | 'needs' | 'body' | 'contentType' | 'hints'>,
  frame: RequestFrame,
  provider?: unknown,
): ClientRequest | Problem {
  const asked = readPolicy(frame.policy, provider);
  if (isProblem(asked)) return asked;
  const {id, caller} = frame;
  return {id, ...errand, ...asked, caller, traceparent: readTraceparent(frame.traceparent)};
}

function noHeaders(): undefined {
  return undefined;
}

const decoder = new TextDecoder();

function parseBody(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(bytes)); // drops a byte order mark
    return isObject(value) ? value : undefined;
  } catch {
    return undefined; // a 400 either way
  }
}

/** W3C trace context; anything else is not passed on. */
function readTraceparent(text: string | undefined): string | undefined {
  return text !== undefined && /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/u.test(text) ? text : undefined;
}
