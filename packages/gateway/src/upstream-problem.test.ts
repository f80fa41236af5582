import test from 'ava';
import {openAiErrors} from './error-form.ts';
import {problemFromEvent, problemFromUpstream} from './upstream-problem.ts';

function upstream(code: number, type: string, more: object = {}): string {
  return JSON.stringify({error: {code, message: 'said so', type, ...more}});
}

test('R24: an error of llama-server keeps its status, message, type and further fields', t => {
  const problem = problemFromUpstream(422, upstream(422, 'unusual_error', {line: 3}));
  t.is(problem.status, 422);
  t.deepEqual(openAiErrors.body(problem, undefined), {
    error: {line: 3, message: 'said so', type: 'unusual_error', param: null, code: 'unusual_error'},
  });
});

test('R24: an error body of another shape is kept beside the reason', t => {
  const problem = problemFromUpstream(422, '{"detail": [1]}');
  t.is(problem.status, 422);
  t.like(openAiErrors.body(problem, undefined), {error: {detail: [1], type: 'invalid_request_error'}});
});

test('a prompt that is too long has the code that clients know', t => {
  const text = upstream(400, 'exceed_context_size_error', {n_prompt_tokens: 6020, n_ctx: 2048});
  const problem = problemFromUpstream(400, text);
  t.like(problem, {status: 400, code: 'context_length_exceeded', message: 'said so'});
  t.deepEqual(problem.extra, {n_prompt_tokens: 6020, n_ctx: 2048});
});

test("a text that is too long to be embedded is the client's fault, whatever llama-server calls it", t => {
  const message =
    'input (600 tokens) is too large to process. increase the physical batch size (current batch size: 150)';
  const problem = problemFromUpstream(500, JSON.stringify({error: {code: 500, message, type: 'server_error'}}));
  t.like(problem, {status: 400, type: 'invalid_request_error', code: 'context_length_exceeded'});
  t.regex(problem.message, /^input \(600 tokens\) is too large .* at most 150 tokens/u);
});

test("what is wrong with a request is the client's fault, whatever llama-server calls it", t => {
  const message = 'Failed to parse tools: Missing tool type: {}';
  const problem = problemFromUpstream(500, JSON.stringify({error: {code: 500, message, type: 'server_error'}}));
  t.like(problem, {status: 400, type: 'invalid_request_error', message, headers: {}});
});

const statuses: readonly (readonly [number, number, Readonly<Record<string, string>>])[] = [
  [400, 400, {}],
  [429, 429, {}],
  [500, 500, {'x-should-retry': 'false'}],
  [501, 400, {}],
  [503, 503, {'retry-after': '1'}],
  [302, 502, {}],
];
for (const [status, expected, headers] of statuses) {
  test(`an upstream status ${status} becomes ${expected}`, t => {
    const problem = problemFromUpstream(status, upstream(status, 'server_error'));
    t.is(problem.status, expected);
    t.deepEqual(problem.headers, headers);
  });
}

for (const text of ['', 'nginx says no', '{"error":"plain"}', '{"error":{}}', '[1]', '{"error":{"message":""}}']) {
  test(`R15: an error body ${JSON.stringify(text)} still gives a message and a code`, t => {
    const {message, code} = problemFromUpstream(500, text);
    t.regex(message, /status 500|plain/u);
    t.is(code, 'server_error');
  });
}

test('an error event has the status that it names, or 502', t => {
  t.is(problemFromEvent({error: {code: 500, message: 'full', type: 'server_error'}})?.status, 500);
  t.is(problemFromEvent({error: {code: 'odd', message: 'full'}})?.status, 502);
  t.is(problemFromEvent({error: 'full'})?.status, 502);
  t.is(problemFromEvent({choices: []}), undefined);
});
