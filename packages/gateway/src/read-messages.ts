import type {Capability} from '@hearsay/core';
import {anthropicErrors} from './error-form.ts';
import {EventReply} from './event-reply.ts';
import {isObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {messagesAssembly} from './messages-assembly.ts';
import {messagesTranslator} from './messages-stream.ts';
import {ObjectReply} from './object-reply.ts';
import type {Operation} from './operation.ts';
import {badRequest, isProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {clientRequest, modelIn, readJson} from './read-request.ts';
import type {JsonBody} from './read-request.ts';

/** Anthropic's Messages API: llama-server speaks it, with gaps that are filled here (facts: client-apis §3). */
export const messages: Operation = {
  errors: anthropicErrors,
  read(bytes, frame) {
    const read = readMessages(bytes);
    if (read.kind === 'problem') return read;
    const {body} = read;
    const model = plainModel(body);
    const request = clientRequest(
      {model, endpoint: '/v1/messages', needs: needsOf(body), body: {...body, stream: true}},
      frame,
    );
    if (isProblem(request)) return request;
    return {
      kind: 'call',
      request,
      answerType: 'text/event-stream',
      reply: (response, clock, patience) =>
        body['stream'] === true
          ? new EventReply(response, messagesTranslator(modelIn(body)), clock, patience)
          : new ObjectReply(response, messagesAssembly(modelIn(body))),
    };
  },
};

/** Pure: the body as llama-server understands it. Fields and blocks that nobody here knows pass. */
export function readMessages(bytes: Uint8Array): JsonBody | Problem {
  const read = readJson(bytes);
  if (read.kind === 'problem') return read;
  const {body} = read;
  if (!Array.isArray(body['messages'])) {
    return badRequest('messages: Field required, a list of messages', {param: 'messages'});
  }
  const chosen = chooseTools(body);
  if (chosen.kind === 'problem') return chosen;
  return {kind: 'body', body: withoutThinking(chosen.body)};
}

/** Pure: the model without the mark by which clients ask for a longer context; no model here is named with it. */
export function plainModel(body: JsonObject): string {
  return modelIn(body).replace(/\[\d+m\]$/iu, '');
}

/**
 * llama-server knows `auto` and `any` only: for a named tool it is shown no other, for `none` it is shown none. Tools
 * that Anthropic's servers run themselves (they come without a schema) cannot be run here.
 */
function chooseTools(body: JsonObject): JsonBody | Problem {
  const {tools, tool_choice: choice, ...rest} = body;
  const type = isObject(choice) ? choice['type'] : undefined;
  const name = isObject(choice) ? choice['name'] : undefined;
  const own = Array.isArray(tools) ? tools.filter(tool => isObject(tool) && isObject(tool['input_schema'])) : [];
  const shown = type === 'tool' ? own.filter(tool => tool['name'] === name) : own;
  if (type === 'tool' && shown.length === 0) {
    return badRequest(`tool_choice: no tool is named ${JSON.stringify(name)}`, {param: 'tool_choice'});
  }
  if (type === 'none' || shown.length === 0) return {kind: 'body', body: rest};
  const asked = type === 'tool' ? {type: 'any'} : choice;
  return {kind: 'body', body: {...rest, tools: shown, ...(asked === undefined ? {} : {tool_choice: asked})}};
}

/** llama-server does not know that thinking can be switched off in this dialect; the template does. */
function withoutThinking(body: JsonObject): JsonObject {
  const {thinking, chat_template_kwargs: template} = body;
  if (!isObject(thinking) || thinking['type'] !== 'disabled') return body;
  return {...body, chat_template_kwargs: {...(isObject(template) ? template : {}), enable_thinking: false}};
}

function needsOf({tools, messages: history}: JsonObject): readonly Capability[] {
  const needs: Capability[] = ['chat'];
  if (Array.isArray(tools)) needs.push('tools');
  if (Array.isArray(history) && history.some(hasImage)) needs.push('vision');
  return needs;
}

/** Images stand in messages, and in what tools gave back. */
function hasImage(value: unknown): boolean {
  if (!isObject(value)) return false;
  if (value['type'] === 'image') return true;
  const {content} = value;
  return Array.isArray(content) && content.some(hasImage);
}
