import test from 'ava';
import {Fault} from '@hearsay/core';
import type {FaultCode} from '@hearsay/core';
import {anthropicErrors, errorFormFor} from './error-form.ts';
import {badRequest, problemFrom} from './problem.ts';
import {problemFromUpstream} from './upstream-problem.ts';

const statuses: readonly (readonly [FaultCode, number, string])[] = [
  ['BAD_REQUEST', 400, 'invalid_request_error'],
  ['MODEL_NOT_FOUND', 404, 'not_found_error'],
  ['OVERLOADED', 429, 'rate_limit_error'],
  ['NO_CANDIDATE', 529, 'overloaded_error'],
  ['ENGINE_MISSING', 503, 'api_error'],
  ['ENGINE_FAILED', 502, 'api_error'],
  ['TIMED_OUT', 504, 'timeout_error'],
  ['INTERNAL', 500, 'api_error'],
];
for (const [code, status, type] of statuses) {
  test(`to an Anthropic client ${code} is ${status} ${type}`, t => {
    const problem = problemFrom(new Fault(code, 'why'));
    t.is(anthropicErrors.status(problem), status);
    t.like(anthropicErrors.body(problem, 'r1'), {type: 'error', error: {type}, request_id: 'r1'});
  });
}

test('a prompt that is too long is said in the words that make Claude Code shorten it', t => {
  const error = {code: 400, message: 'said so', type: 'exceed_context_size_error', n_prompt_tokens: 9, n_ctx: 4};
  const body = anthropicErrors.body(problemFromUpstream(400, JSON.stringify({error})), undefined);
  t.like(body, {error: {type: 'invalid_request_error', message: 'prompt is too long: 9 tokens > 4 maximum'}});
});

const urls: readonly (readonly [url: string, headers: Readonly<Record<string, string>>, shape: object])[] = [
  ['/v1/messages?beta=true', {}, {type: 'error'}],
  ['//v1/messages/count_tokens', {}, {type: 'error'}],
  ['/v1/v1/messages', {}, {type: 'error'}],
  ['http://localhost/v1/messages', {}, {type: 'error'}],
  ['/v1/models', {'anthropic-version': '2023-06-01'}, {type: 'error'}],
  ['/v1/models', {}, {error: {code: 'invalid_value'}}],
  ['/v1/messagesx', {}, {error: {code: 'invalid_value'}}],
  ['/api/chat', {}, {error: 'no'}],
];
for (const [url, headers, shape] of urls) {
  test(`an error at ${url} with ${Object.keys(headers).length} headers has the shape of its dialect`, t => {
    t.like(errorFormFor(url, headers).body(badRequest('no'), undefined), shape);
  });
}
