import type {Capability} from '@hearsay/core';
import {openAiErrors} from './error-form.ts';
import {EventReply} from './event-reply.ts';
import {isAbsent, isObject} from './json.ts';
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
  return complainOfText(body);
}

/** llama-server would look past most of this, and answer with a text of any form. */
function complainOfText(body: JsonObject): Problem | undefined {
  const {text, response_format: other} = body;
  if (isAbsent(text)) return undefined;
  if (!isObject(text)) return badRequest('text is no object', {param: 'text'});
  const {format} = text;
  if (isAbsent(format)) return undefined;
  if (!isObject(format)) return badRequest('text.format is no object', {param: 'text.format'});
  const {type, schema} = format;
  if (typeof type !== 'string' || !forms.has(type)) {
    return badRequest(`text.format.type is none of ${[...forms].join(', ')}`, {param: 'text.format.type'});
  }
  if (type === 'json_schema' && !isObject(schema)) {
    const message = 'text.format.schema, which the type json_schema needs, is missing or is no object';
    return badRequest(message, {param: 'text.format.schema'});
  }
  return isAbsent(other)
    ? undefined
    : badRequest('text.format and response_format mean the same; send one of them', {param: 'response_format'});
}

const forms: ReadonlySet<string> = new Set(['text', 'json_object', 'json_schema']);

/** What form the text shall have: llama-server of today reads it only where chats have it. */
function formOf({text}: JsonObject): JsonObject {
  const format = isObject(text) ? text['format'] : undefined;
  if (!isObject(format)) return {};
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
