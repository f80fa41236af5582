import test from 'ava';
import {mediaTextBytes, routingHints} from './routing-hints.ts';

const none = (): undefined => undefined;
const user = (content: unknown): object => ({role: 'user', content});
const conversation = (body: Record<string, unknown>): readonly string[] => routingHints(body, none).conversation;

test('a conversation that goes on begins as it did', t => {
  const before = conversation({tools: [{a: 1}], messages: [user('hi')]});
  const after = conversation({tools: [{a: 1}], messages: [user('hi'), {role: 'assistant', content: 'ho'}, user('x')]});
  t.deepEqual(after.slice(0, before.length), before);
  t.is(after.length, 4);
});

test('role, text, images, tools and tool calls all make a difference', t => {
  const image = (url: string): object => ({type: 'image_url', image_url: {url}});
  const bodies = [
    {messages: [user('a')]},
    {messages: [{role: 'system', content: 'a'}]},
    {messages: [user([{type: 'text', text: 'a'}, image('data:1')])]},
    {messages: [user([{type: 'text', text: 'a'}, image('data:2')])]},
    {messages: [user('a')], tools: [{name: 't'}]},
    {messages: [{role: 'assistant', content: null, tool_calls: [{id: 1}]}]},
    {prompt: 'a'},
    {system: 'b', messages: [user('a')]},
    {instructions: 'c', input: 'a'},
    {instructions: 'c', input: [user('a')]},
  ];
  t.is(new Set(bodies.map(body => conversation(body).join('|'))).size, bodies.length);
});

test('a picture or a recording counts as a short text, in every dialect and wherever it stands', t => {
  const data = 'A'.repeat(1_000_000);
  const count = (body: Record<string, unknown>): number => routingHints(body, none).mediaBytes;
  const image = {type: 'image', source: {type: 'base64', media_type: 'image/png', data}};
  const parts: readonly object[] = [
    {type: 'image_url', image_url: {url: data}},
    {type: 'image_url', image_url: data},
    {type: 'input_audio', input_audio: {data, format: 'wav'}},
    {type: 'input_image', image_url: data},
    image,
    {type: 'tool_result', content: [image]},
  ];
  for (const part of parts) t.is(count({messages: [user([part])]}), 1_000_000 - mediaTextBytes, JSON.stringify(part));
  t.is(count({input: [{type: 'function_call_output', output: [parts[3]]}]}), 1_000_000 - mediaTextBytes);
  t.is(count({messages: [user([parts[0], parts[1]]), user(data)]}), 2 * (1_000_000 - mediaTextBytes));
  t.is(count({messages: [user([{type: 'image_url', image_url: {url: 'data:image/png;base64,AAAA'}}])]}), 0);
  t.is(count({messages: 5, input: data}), 0);
});

test('nothing that a client may send makes it throw', t => {
  for (const messages of [null, 'x', [null], [1], [{}], [{content: [null, 1, {}]}], [{content: 7}]]) {
    t.notThrows(() => conversation({messages, tools: 5, prompt: ['a']}));
  }
});

test('the session is the first that a client sends: headers before the body, an endless one never', t => {
  const session = (body: Record<string, unknown>, headers: Record<string, string> = {}): string | undefined =>
    routingHints(body, name => headers[name]).session;
  t.is(session({prompt_cache_key: 'body'}, {'x-session-id': 'head', 'thread-id': 'later'}), 'head');
  t.is(session({conversation_id: 'c', session_id: 's'}), 's');
  t.is(session({user: 'ada'}), undefined);
  t.is(session({metadata: {user_id: 'user_1_session_2'}}), 'user_1_session_2');
  t.is(session({session_id: 'x'.repeat(256), conversation_id: 'c'}), 'c');
});

test('the limit on output tokens is whichever the client has set', t => {
  t.is(routingHints({max_tokens: 5, max_completion_tokens: 3}, none).maxTokens, 3);
  t.is(routingHints({max_tokens: -1}, none).maxTokens, undefined);
});
