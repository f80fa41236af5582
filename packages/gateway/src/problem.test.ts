import test from 'ava';
import {Fault} from '@hearsay/core';
import type {FaultCode} from '@hearsay/core';
import {openAiErrors} from './error-form.ts';
import {problemFrom} from './problem.ts';

const table: readonly (readonly [FaultCode, number, string, string])[] = [
  ['BAD_REQUEST', 400, 'invalid_request_error', 'invalid_value'],
  ['MODEL_NOT_FOUND', 404, 'invalid_request_error', 'model_not_found'],
  ['NO_CANDIDATE', 503, 'server_error', 'no_candidate'],
  ['OVERLOADED', 429, 'rate_limit_error', 'rate_limit_exceeded'],
  ['ENGINE_FAILED', 502, 'server_error', 'bad_gateway'],
  ['PEER_FAILED', 502, 'server_error', 'bad_gateway'],
  ['INTERRUPTED', 502, 'server_error', 'interrupted'],
  ['TIMED_OUT', 504, 'server_error', 'timeout'],
  ['CANCELLED', 499, 'invalid_request_error', 'cancelled'],
  ['INTERNAL', 500, 'server_error', 'internal_error'],
];

for (const [fault, status, type, code] of table) {
  test(`${fault} is ${status} ${code}`, t => {
    const problem = problemFrom(new Fault(fault, 'why'));
    t.like(problem, {status, type, code, message: 'why'});
  });
}

test('a model that is not known is the fault of the parameter model', t => {
  const body = openAiErrors.body(problemFrom(new Fault('MODEL_NOT_FOUND', 'no')), undefined);
  t.deepEqual(body, {error: {message: 'no', type: 'invalid_request_error', param: 'model', code: 'model_not_found'}});
});

test('a fault that says which parameter is wrong is shown with it', t => {
  const fault = new Fault('BAD_REQUEST', 'no model is named', {details: {param: 'model'}});
  t.is(problemFrom(fault).param, 'model');
});

test('C42: an overloaded mesh says when to come again, in whole seconds that clients honour', t => {
  const retryAfter = (retryAfterMs: number): unknown =>
    problemFrom(new Fault('OVERLOADED', 'busy', {details: {retryAfterMs}})).headers?.['retry-after'];
  t.deepEqual([0, 1, 1001, 3_600_000].map(retryAfter), ['1', '1', '2', '60']);
});

test('a fault that lasts tells clients not to repeat the request', t => {
  const lasting = new Fault('NO_CANDIDATE', 'pinned node is away', {details: {retryable: false}});
  t.deepEqual(problemFrom(lasting).headers, {'x-should-retry': 'false'});
  t.deepEqual(problemFrom(new Fault('NO_CANDIDATE', 'none yet')).headers, {'retry-after': '1'});
});

test('R15: an error without a message still says something', t => {
  t.not(problemFrom(new Fault('PEER_FAILED', '')).message, '');
  t.not(problemFrom(new TypeError('')).message, '');
});

test('a bug of ours does not show its insides to clients', t => {
  const problem = problemFrom(new TypeError('cannot read secret of undefined'));
  t.is(problem.status, 500);
  t.notRegex(problem.message, /secret/u);
});

test('details reach the client without paths and secrets', t => {
  const details = {
    refusals: [{node: 'spark', reason: 'too large', modelFile: '/models/x.gguf'}],
    waitedMs: 12,
    apiKey: 'abc',
    where: '/home/someone/model.gguf',
    bytes: new Uint8Array(2),
    nothing: undefined,
  };
  t.deepEqual(problemFrom(new Fault('NO_CANDIDATE', 'none', {details})).metadata, {
    refusals: [{node: 'spark', reason: 'too large'}],
    waitedMs: 12,
    bytes: {0: 0, 1: 0},
  });
});

test('R22, R24: what llama-server answered is told when no node could do better', t => {
  const body = JSON.stringify({error: {code: 500, message: 'bad grammar', type: 'server_error'}});
  const fault = new Fault('ENGINE_FAILED', 'bad grammar (tried: spark)', {
    details: {status: 500, body, attempts: ['spark']},
  });
  const problem = problemFrom(fault);
  t.like(problem, {status: 500, type: 'server_error', code: 'server_error', message: 'bad grammar (tried: spark)'});
  t.deepEqual(problem.headers, {'x-should-retry': 'false'});
  t.deepEqual(problem.metadata, {status: 500, attempts: ['spark']});
});
