import test from 'ava';
import {problemFromUpstream} from '../upstream-problem.ts';
import {shorten} from './shorten.ts';

const tooLong = (tokens: number, context: number) =>
  problemFromUpstream(
    400,
    JSON.stringify({
      error: {code: 400, message: 'x', type: 'exceed_context_size_error', n_prompt_tokens: tokens, n_ctx: context},
    }),
  );

const system = {role: 'system', content: 'be'};
const user = (content: string) => ({role: 'user', content});
const long = 'x'.repeat(100);

test('the oldest messages go, the system text and the last message stay', t => {
  const messages = [system, user(`1${long}`), user(`2${long}`), user(`3${long}`), user('last')];
  const shorter = shorten({messages, seed: 4}, tooLong(200, 150));
  t.deepEqual(shorter, {messages: [system, user(`3${long}`), user('last')], seed: 4});
});

test('the answer of a tool goes with its call', t => {
  const call = {role: 'assistant', content: long, tool_calls: []};
  const result = {role: 'tool', content: 'r'};
  const messages = [call, result, user('last')];
  t.deepEqual(shorten({messages}, tooLong(200, 150)), {messages: [user('last')]});
});

test('when nothing can go, or something else is wrong, there is nothing to mend', t => {
  t.is(shorten({messages: [system, user(long)]}, tooLong(200, 10)), undefined);
  t.is(
    shorten({messages: [user(long), user('x')]}, problemFromUpstream(400, '{"error":{"message":"other"}}')),
    undefined,
  );
  t.is(shorten({prompt: long}, tooLong(200, 10)), undefined);
});
