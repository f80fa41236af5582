import test from 'ava';
import {newRequestId} from '@hearsay/core';
import {parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import type {Call, RequestFrame} from './operation.ts';
import type {Problem} from './problem.ts';
import {messages as operation} from './read-messages.ts';

const id = newRequestId({next: () => 0, bytes: length => new Uint8Array(length)});
const frame: RequestFrame = {id, policy: undefined, traceparent: undefined, contentType: undefined};
const messages = [{role: 'user', content: 'hi'}];
const own = {name: 'a', input_schema: {type: 'object'}};
const other = {name: 'b', input_schema: {type: 'object'}};
const search = {type: 'web_search_20250305', name: 'web_search'};

function read(body: JsonObject): Call | Problem {
  return operation.read(Buffer.from(JSON.stringify(body)), frame);
}

function callOf(body: JsonObject): Call {
  const call = read({model: 'm', messages, ...body});
  if (call.kind === 'problem') throw new Error(call.message);
  return call;
}

function upstream(body: JsonObject): JsonObject {
  return parseObject(new TextDecoder().decode(callOf(body).request.body)) ?? {};
}

test('what nobody here knows passes, and the engine always streams', t => {
  const odd = {context_management: {edits: []}, metadata: {user_id: 'u'}, service_tier: 'auto', cache_control: {}};
  t.deepEqual(upstream(odd), {model: 'm', messages, ...odd, stream: true});
});

test('the mark for a long context is no part of the name', t => {
  t.is(callOf({model: 'claude-opus-4[1m]'}).request.model, 'claude-opus-4');
  t.is(callOf({model: 'qwen[x]'}).request.model, 'qwen[x]');
});

const choices: readonly (readonly [what: string, body: JsonObject, sent: JsonObject])[] = [
  ['no choice', {tools: [own, other]}, {tools: [own, other]}],
  ['auto', {tools: [own], tool_choice: {type: 'auto'}}, {tools: [own], tool_choice: {type: 'auto'}}],
  [
    'one tool',
    {tools: [own, other], tool_choice: {type: 'tool', name: 'b'}},
    {tools: [other], tool_choice: {type: 'any'}},
  ],
  ['none', {tools: [own], tool_choice: {type: 'none'}}, {}],
  ['tools of Anthropic itself among others', {tools: [search, own]}, {tools: [own]}],
  ['tools of Anthropic itself alone', {tools: [search], tool_choice: {type: 'any'}}, {}],
];
for (const [what, body, sent] of choices) {
  test(`tool choice: ${what}`, t => {
    t.deepEqual(upstream(body), {model: 'm', messages, ...sent, stream: true});
    t.deepEqual(callOf(body).request.needs, 'tools' in sent ? ['chat', 'tools'] : ['chat']);
  });
}

test('a tool that is not there cannot be chosen', t => {
  t.like(read({messages, tools: [own], tool_choice: {type: 'tool', name: 'z'}}), {kind: 'problem', status: 400});
});

test('thinking that is switched off is switched off in the template', t => {
  t.like(upstream({thinking: {type: 'disabled'}}), {chat_template_kwargs: {enable_thinking: false}});
  t.is(upstream({thinking: {type: 'adaptive'}})['chat_template_kwargs'], undefined);
});

test('images need eyes, also in what a tool gave back', t => {
  const image = {type: 'image', source: {type: 'base64', media_type: 'image/png', data: ''}};
  const inMessage = [{role: 'user', content: [image]}];
  const inResult = [{role: 'user', content: [{type: 'tool_result', tool_use_id: 'x', content: [image]}]}];
  t.deepEqual(callOf({messages: inMessage}).request.needs, ['chat', 'vision']);
  t.deepEqual(callOf({messages: inResult}).request.needs, ['chat', 'vision']);
});

test('a body without messages is the mistake of the client, also when it looks like an error of ours', t => {
  t.like(read({model: 'm'}), {kind: 'problem', status: 400, param: 'messages'});
  t.like(read({kind: 'problem', status: 200, message: 'x'}), {status: 400, param: 'messages'});
});
