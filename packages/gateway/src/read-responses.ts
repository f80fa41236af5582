import type {Capability} from '@hearsay/core';
import {openAiErrors} from './error-form.ts';
import {EventReply} from './event-reply.ts';
import {isObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {ObjectReply} from './object-reply.ts';
import type {Operation} from './operation.ts';
import {badRequest, isProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {clientRequest, modelIn, readJson} from './read-request.ts';
import {responsesAssembly, responsesTranslator} from './responses-stream.ts';

/** OpenAI's Responses API: llama-server speaks it without keeping any state (facts: client-apis §2.4). */
export const responses: Operation = {
  errors: openAiErrors,
  read(bytes, frame) {
    const read = readJson(bytes);
    if (read.kind === 'problem') return read;
    const {body} = read;
    const complaint = complain(body);
    if (complaint) return complaint;
    const sent = {...withoutHiddenReasoning(body), ...formOf(body), stream: true};
    const request = clientRequest(
      {model: modelIn(body), endpoint: '/v1/responses', needs: needsOf(body), body: sent},
      frame,
    );
    if (isProblem(request)) return request;
    return {
      kind: 'call',
      request,
      answerType: 'text/event-stream',
      reply: (response, clock, situation) => {
        const {contextOfRun} = situation;
        const nowSeconds = (): number => Math.floor(clock.wallMs() / 1000);
        const origin = {id: frame.id, atSeconds: nowSeconds(), nowSeconds, contextOfRun};
        return body['stream'] === true
          ? new EventReply(response, responsesTranslator(body, origin), clock, situation)
          : new ObjectReply(response, responsesAssembly(body, origin));
      },
    };
  },
};

function complain(body: JsonObject): Problem | undefined {
  const {input} = body;
  if (typeof input !== 'string' && !Array.isArray(input)) {
    return badRequest('input is missing, or is neither a text nor a list', {param: 'input'});
  }
  for (const name of ['previous_response_id', 'conversation']) {
    if (body[name] !== undefined && body[name] !== null) {
      const message = `${name} is not possible, because no answers are kept here; send the whole conversation as input`;
      return badRequest(message, {param: name});
    }
  }
  if (body['background'] === true) {
    return badRequest('background is not possible, because no answers are kept here', {param: 'background'});
  }
  return isSchemaMissing(textFormat(body))
    ? badRequest('text.format has no schema, which its type json_schema needs', {param: 'text.format.schema'})
    : undefined;
}

function textFormat({text}: JsonObject): JsonObject | undefined {
  const format = isObject(text) ? text['format'] : undefined;
  return isObject(format) ? format : undefined;
}

function isSchemaMissing(format: JsonObject | undefined): boolean {
  return format?.['type'] === 'json_schema' && !isObject(format['schema']);
}

/** What form the text shall have: llama-server of today reads it only where chats have it. */
function formOf(body: JsonObject): JsonObject {
  const format = textFormat(body);
  if (format === undefined) return {};
  const {type, ...schema} = format;
  return {response_format: type === 'json_schema' ? {type, json_schema: schema} : format};
}

/** Reasoning without its text says nothing to a model here, and llama-server refuses it. */
function withoutHiddenReasoning(body: JsonObject): JsonObject {
  const {input} = body;
  if (!Array.isArray(input)) return body;
  const isHidden = (item: unknown): boolean =>
    isObject(item) && item['type'] === 'reasoning' && !Array.isArray(item['content']);
  return {...body, input: input.filter(item => !isHidden(item))};
}

function needsOf({tools, input}: JsonObject): readonly Capability[] {
  const needs: Capability[] = ['chat'];
  if (Array.isArray(tools) && tools.some(tool => isObject(tool) && tool['type'] === 'function')) needs.push('tools');
  if (Array.isArray(input) && input.some(hasImage)) needs.push('vision');
  return needs;
}

/** Images stand in messages, and in what tools gave back. */
function hasImage(item: unknown): boolean {
  if (!isObject(item)) return false;
  const isImage = (part: unknown): boolean => isObject(part) && part['type'] === 'input_image';
  return [item['content'], item['output']].some(parts => Array.isArray(parts) && parts.some(isImage));
}
