import type {Capability, Endpoint} from '@hearsay/core';
import {completionAssembly} from './completion-assembly.ts';
import {openAiErrors} from './error-form.ts';
import {isObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {ObjectReply} from './object-reply.ts';
import type {Call, Operation, RequestFrame} from './operation.ts';
import {badRequest, isProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {promptNeeds} from './prompt-media.ts';
import {clientRequest, modelIn, readJson} from './read-request.ts';
import {StreamReply} from './stream-reply.ts';

type CompletionEndpoint = '/v1/chat/completions' | '/v1/completions';

/** OpenAI's chat and text completions. */
export function completion(endpoint: CompletionEndpoint): Operation {
  return {errors: openAiErrors, read: (bytes, frame) => readCompletion(bytes, frame, endpoint)};
}

/** Pure: llama-server speaks the same language, so that only a wish for one object changes the body. */
function readCompletion(bytes: Uint8Array, frame: RequestFrame, endpoint: CompletionEndpoint): Call | Problem {
  const read = readJson(bytes);
  if (read.kind === 'problem') return read;
  const {body} = read;
  const complaint = complain(body, endpoint);
  if (complaint) return complaint;
  const stream = body['stream'] === true;
  const errand = {model: modelIn(body), endpoint, needs: needsOf(body, endpoint), body: stream ? body : streamed(body)};
  const request = clientRequest(errand, frame);
  if (isProblem(request)) return request;
  return {
    kind: 'call',
    request,
    answerType: 'text/event-stream',
    reply: (response, clock, patience) =>
      stream
        ? new StreamReply(response, clock, patience)
        : new ObjectReply(response, completionAssembly(endpoint, answersPerPrompt(body), begunIn(body))),
  };
}

/** Pure: how many answers to one prompt are wanted. */
export function answersPerPrompt(body: JsonObject): number {
  const wanted = body['n_cmpl'] ?? body['n'];
  return typeof wanted === 'number' && wanted >= 1 ? Math.trunc(wanted) : 1;
}

/**
 * Pure: the answer that the client has begun and wants continued. llama-server leaves it out of a stream only when it
 * is asked for in vLLM's way, and repeats it in one object in any way.
 */
function begunIn({messages, continue_final_message: wanted}: JsonObject): string {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  if ((wanted !== true && wanted !== 'content') || !isObject(last)) return '';
  const {content} = last;
  if (typeof content === 'string') return content;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [];
  return parts.flatMap(part => (isObject(part) && typeof part['text'] === 'string' ? [part['text']] : [])).join('\n\n');
}

/** The first thing that no node could make sense of. */
function complain({messages, prompt}: JsonObject, endpoint: Endpoint): Problem | undefined {
  if (endpoint === '/v1/chat/completions' && !Array.isArray(messages)) {
    return badRequest('messages is missing or is not a list', {param: 'messages'});
  }
  if (endpoint === '/v1/completions' && (prompt === undefined || prompt === null)) {
    return badRequest('prompt is missing', {param: 'prompt'});
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
  const {tools, messages, prompt} = body;
  if (Array.isArray(tools) && tools.length > 0) needs.push('tools');
  if (hasPart(messages, 'image_url')) needs.push('vision');
  if (hasPart(messages, 'input_audio')) needs.push('audio');
  return [...needs, ...promptNeeds(prompt)];
}

function hasPart(messages: unknown, type: string): boolean {
  const parts = (message: unknown): unknown => (isObject(message) ? message['content'] : undefined);
  const isMeant = (part: unknown): boolean => isObject(part) && part['type'] === type;
  return Array.isArray(messages) && messages.map(parts).some(each => Array.isArray(each) && each.some(isMeant));
}
