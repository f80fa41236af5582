import test from 'ava';
import {automatic, newRequestId} from '@hearsay/core';
import {parseObject} from './json.ts';
import type {Call, RequestFrame} from './operation.ts';
import type {Problem} from './problem.ts';
import {completion} from './read-completion.ts';

const id = newRequestId({next: () => 0, bytes: length => new Uint8Array(length)});
const frame: RequestFrame = {id, policy: undefined, traceparent: undefined, contentType: undefined};
type Endpoint = Parameters<typeof completion>[0];
type Changes = Partial<RequestFrame> & {readonly endpoint?: Endpoint};
const messages = [{role: 'user', content: 'hi'}];

function read(body: unknown, {endpoint = '/v1/chat/completions', ...changes}: Changes = {}): Call | Problem {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return completion(endpoint).read(new TextEncoder().encode(text), {...frame, ...changes});
}

function readWell(body: unknown, changes: Changes = {}): Call {
  const call = read(body, changes);
  if (call.kind === 'problem') throw new Error(call.message);
  return call;
}

function upstream({request}: Call): unknown {
  return parseObject(new TextDecoder().decode(request.body));
}

const bad: readonly (readonly [string, unknown, Endpoint, string | undefined])[] = [
  ['empty', '', '/v1/chat/completions', undefined],
  ['not JSON', '{"messages":', '/v1/chat/completions', undefined],
  ['a list', '[]', '/v1/chat/completions', undefined],
  ['null', 'null', '/v1/chat/completions', undefined],
  ['without messages', {model: 'm'}, '/v1/chat/completions', 'messages'],
  ['with messages of the wrong kind', {messages: 'hi'}, '/v1/chat/completions', 'messages'],
  ['without a prompt', {model: 'm'}, '/v1/completions', 'prompt'],
  ['with a number for a model', {messages, model: 4}, '/v1/chat/completions', 'model'],
  ['with an endless model name', {messages, model: 'm'.repeat(201)}, '/v1/chat/completions', 'model'],
  ['with a word for stream', {messages, stream: 'yes'}, '/v1/chat/completions', 'stream'],
];
for (const [what, body, endpoint, param] of bad) {
  test(`a body ${what} is the client's mistake, not a server error`, t => {
    const problem = read(body, {endpoint});
    t.like(problem, {kind: 'problem', status: 400, type: 'invalid_request_error'});
    t.is(problem.kind === 'problem' ? problem.param : 'none', param);
  });
}

test('a body that is no JSON is told where it breaks, without its words', t => {
  for (const [text, why] of [
    ['', /: it is empty$/u],
    ['{"messages":', /: Unexpected end of JSON input$/u],
    ['{"messages": [{"content": "a secret"},]}', /: Unexpected token '\]'$/u],
    ['{"a": "a secret",}', /: Expected double-quoted property name at position 17 \(line 1 column 18\)$/u],
    ['[]', /is not a JSON object$/u],
  ] as const) {
    const problem = read(text, {endpoint: '/v1/chat/completions'});
    t.regex(problem.kind === 'problem' ? problem.message : '', why);
  }
});

test('a streamed request goes on as it is', t => {
  const body = {model: 'm', messages, stream: true, seed: 1, odd: {a: [1]}};
  const call = readWell(body);
  t.deepEqual(upstream(call), body);
});

test('C6: a request for one object is streamed upstream all the same, with its usage', t => {
  const call = readWell({model: 'm', messages, stream: false, stream_options: {odd: 1}});
  t.like(upstream(call), {stream: true, stream_options: {odd: 1, include_usage: true}});
});

test('a missing model is left to the cluster', t => {
  t.is(readWell({messages}).request.model, '');
  t.is(readWell({messages, model: null}).request.model, '');
});

test('needs follow from the endpoint, the tools and the parts of the messages', t => {
  t.deepEqual(readWell({messages, tools: []}).request.needs, ['chat']);
  t.deepEqual(readWell({messages, tools: [{}]}).request.needs, ['chat', 'tools']);
  const image = {role: 'user', content: [{type: 'text'}, {type: 'image_url', image_url: {url: 'data:'}}]};
  t.deepEqual(readWell({messages: [...messages, image]}).request.needs, ['chat', 'vision']);
  const sound = {role: 'user', content: [{type: 'input_audio', input_audio: {data: '', format: 'wav'}}]};
  t.deepEqual(readWell({messages: [sound]}).request.needs, ['chat', 'audio']);
  t.deepEqual(readWell({prompt: 'x'}, {endpoint: '/v1/completions'}).request.needs, ['completion']);
});

test('the policy header is parsed, and a wrong one is refused', t => {
  t.deepEqual(readWell({messages}).request.policy, automatic);
  const {policy} = readWell({messages}, {policy: 'pin=spark'}).request;
  t.deepEqual(policy.placement, {kind: 'pin', nodes: ['spark']});
  t.like(read({messages}, {policy: 'fastest'}), {kind: 'problem', status: 400, param: 'x-hearsay-policy'});
});

test('only a well-formed trace context is passed on', t => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  t.is(readWell({messages}, {traceparent}).request.traceparent, traceparent);
  t.is(readWell({messages}, {traceparent: 'x'}).request.traceparent, undefined);
});

test('a byte order mark before the body does no harm', t => {
  t.is(readWell(`\uFEFF${JSON.stringify({messages, model: 'm'})}`).request.model, 'm');
});
