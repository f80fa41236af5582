import type {Endpoint} from '@hearsay/core';
import {openAiErrors} from './error-form.ts';
import {EventReply} from './event-reply.ts';
import type {JsonObject} from './json.ts';
import {nativeAssembly, nativeTranslator} from './native-answer.ts';
import type {NativeWish} from './native-answer.ts';
import {ObjectReply} from './object-reply.ts';
import type {Call, Operation, RequestFrame} from './operation.ts';
import {PlainReply} from './plain-reply.ts';
import {badRequest, isProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {promptNeeds} from './prompt-media.ts';
import {answersPerPrompt} from './read-completion.ts';
import {clientRequest, modelIn, readJson} from './read-request.ts';

/** Fields without which a request means nothing. */
const neededFields = {'/completion': ['prompt'], '/infill': ['input_prefix', 'input_suffix']} as const;

/** Most answers that one request may ask for: llama-server makes a task of each, at once. */
const answersMax = 1024;

/** llama-server's own API for texts and for gaps in them: what its tests and its own clients use. */
export function native(endpoint: keyof typeof neededFields): Operation {
  return {errors: openAiErrors, read: (bytes, frame) => readNative(bytes, frame, endpoint)};
}

/**
 * Two APIs share some paths without `/v1`: OpenAI's, whose requests always name a model, and llama-server's own, whose
 * requests need not. Each client gets the one that it means.
 */
export function byModel(openAi: Operation, own: Operation): Operation {
  return {
    errors: openAiErrors,
    read(bytes, frame) {
      const read = readJson(bytes);
      if (read.kind === 'problem') return read;
      return (modelIn(read.body) === '' ? own : openAi).read(bytes, frame);
    },
  };
}

/** What llama-server says of itself and its model. The model may be named in the query. */
export function lookAt(endpoint: Endpoint, rewrite?: (answer: JsonObject) => JsonObject): Operation {
  return {
    errors: openAiErrors,
    read(_bytes, frame) {
      const request = clientRequest({model: frame.query?.get('model') ?? '', endpoint, needs: [], body: {}}, frame);
      if (isProblem(request)) return request;
      return {
        kind: 'call',
        request,
        answerType: 'application/json',
        reply: response => new PlainReply(response, openAiErrors, rewrite),
      };
    },
  };
}

/** The path of a file is the owner's own business; its name is that of the model. */
export function withoutFolders(properties: JsonObject): JsonObject {
  const {model_path: path} = properties;
  return typeof path === 'string' ? {...properties, model_path: path.replace(/^.*[/\\]/su, '')} : properties;
}

function readNative(bytes: Uint8Array, frame: RequestFrame, endpoint: keyof typeof neededFields): Call | Problem {
  const read = readJson(bytes);
  if (read.kind === 'problem') return read;
  const {response_fields: fields, ...body} = read.body; // ours to choose from: with too few the end is not seen
  const missing = neededFields[endpoint].find(name => body[name] === undefined || body[name] === null);
  if (missing !== undefined) return badRequest(`${missing} is missing`, {param: missing});
  const wish = {answers: answersIn(body, endpoint), fields: texts(fields), showsTokens: body['return_tokens'] === true};
  if (wish.answers > answersMax) return badRequest(`these are more than ${answersMax} answers`, {param: 'prompt'});
  const sent = {...body, stream: true};
  const needs = ['completion', ...promptNeeds(body['prompt'])] as const;
  const request = clientRequest({model: modelIn(body), endpoint, needs, body: sent}, frame);
  if (isProblem(request)) return request;
  return {kind: 'call', request, answerType: 'text/event-stream', reply: replyFor(wish, body['stream'] === true)};
}

function replyFor(wish: NativeWish, stream: boolean): Call['reply'] {
  return (response, clock, patience) =>
    stream
      ? new EventReply(response, nativeTranslator(wish), clock, patience)
      : new ObjectReply(response, nativeAssembly(wish));
}

/** A list is a list of prompts, unless there are numbers in it: then it is one prompt of tokens. */
function answersIn(body: JsonObject, endpoint: Endpoint): number {
  const {prompt} = body;
  const isMany = endpoint === '/completion' && Array.isArray(prompt) && !prompt.some(part => typeof part === 'number');
  return (isMany ? prompt.length : 1) * answersPerPrompt(body);
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter(each => typeof each === 'string') : [];
}
