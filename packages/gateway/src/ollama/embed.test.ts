import test from 'ava';
import {problemFromUpstream} from '../upstream-problem.ts';
import {cut, excess} from './embed.ts';

const upstream = (error: object) => problemFromUpstream(500, JSON.stringify({error}));

test('how much of an input is too long is read from both ways in which llama-server says so', t => {
  const message =
    'input (600 tokens) is too large to process. increase the physical batch size (current batch size: 150)';
  t.is(excess(upstream({code: 500, message})), 0.25);
  t.is(excess(upstream({type: 'exceed_context_size_error', message: 'x', n_prompt_tokens: 200, n_ctx: 100})), 0.5);
  t.is(excess(upstream({code: 500, message: 'something else'})), undefined);
});

test('only inputs that are longer than the longest may be are cut', t => {
  t.deepEqual(cut(['x'.repeat(1000), 'short'], 0.5), ['x'.repeat(450), 'short']);
  t.deepEqual(cut(['ab'], 0.1), ['a']);
});
