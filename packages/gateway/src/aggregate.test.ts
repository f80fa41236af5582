import test from 'ava';
import {Aggregate} from './aggregate.ts';
import type {JsonObject} from './json.ts';

function chat(...chunks: readonly JsonObject[]): JsonObject {
  const aggregate = new Aggregate('/v1/chat/completions');
  for (const chunk of chunks) aggregate.add({id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 7, ...chunk});
  return aggregate.result();
}

function delta(fields: JsonObject, index = 0): JsonObject {
  return {choices: [{index, delta: fields, finish_reason: null}]};
}

test('the pieces of a chat answer become one message', t => {
  const answer = chat(
    delta({role: 'assistant', content: null}),
    delta({reasoning_content: 'Let me '}),
    delta({reasoning_content: 'think'}),
    delta({content: 'Hel'}),
    delta({content: 'lo'}),
    {choices: [{index: 0, delta: {}, finish_reason: 'stop'}], timings: {predicted_n: 2}},
    {choices: [], usage: {total_tokens: 5}, model: 'tiny', system_fingerprint: 'b1', odd: true},
  );
  t.deepEqual(answer, {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 7,
    model: 'tiny',
    system_fingerprint: 'b1',
    odd: true,
    timings: {predicted_n: 2},
    usage: {total_tokens: 5},
    choices: [
      {
        index: 0,
        message: {role: 'assistant', content: 'Hello', reasoning_content: 'Let me think'},
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
  });
});

test('several choices stay apart and come in order', t => {
  const {choices} = chat(delta({content: 'B'}, 1), delta({content: 'a'}, 0), delta({content: 'b'}, 1));
  t.like(choices, [
    {index: 0, message: {content: 'a'}},
    {index: 1, message: {content: 'Bb'}},
  ]);
});

test('tool calls are put together by their index', t => {
  const answer = chat(
    delta({tool_calls: [{index: 0, id: 'c0', type: 'function', function: {name: 'add', arguments: '{"a"'}}]}),
    delta({tool_calls: [{index: 1, id: 'c1', type: 'function', function: {name: 'sub', arguments: ''}}]}),
    delta({tool_calls: [{index: 0, function: {name: '', arguments: ':1}'}}]}),
    delta({tool_calls: [{index: 1, function: {arguments: '{}'}}]}),
    {choices: [{index: 0, delta: {}, finish_reason: 'tool_calls'}]},
  );
  t.like(answer['choices'], [
    {
      finish_reason: 'tool_calls',
      message: {
        content: null,
        tool_calls: [
          {type: 'function', id: 'c0', function: {name: 'add', arguments: '{"a":1}'}},
          {type: 'function', id: 'c1', function: {name: 'sub', arguments: '{}'}},
        ],
      },
    },
  ]);
});

test('an empty answer has an empty text and no missing one', t => {
  const {choices} = chat({choices: [{index: 0, delta: {}, finish_reason: 'length'}]});
  t.like(choices, [{message: {role: 'assistant', content: ''}, finish_reason: 'length'}]);
});

test('log probabilities of all tokens are kept', t => {
  const one = (token: string): JsonObject => ({
    choices: [{index: 0, delta: {content: token}, logprobs: {content: [{token, logprob: -1}], refusal: null}}],
  });
  const {choices} = chat(one('a'), one('b'));
  t.like(choices, [{logprobs: {content: [{token: 'a'}, {token: 'b'}], refusal: null}}]);
});

test('a text completion joins text and the older kind of log probabilities', t => {
  const aggregate = new Aggregate('/v1/completions');
  aggregate.add({id: 'c', choices: [{index: 0, text: 'a', logprobs: {tokens: ['a'], token_logprobs: [-1]}}]});
  aggregate.add({id: 'c', choices: [{index: 0, text: 'b', logprobs: {tokens: ['b'], token_logprobs: [-2]}}]});
  aggregate.add({id: 'c', choices: [{index: 0, text: '', finish_reason: 'length'}], usage: {total_tokens: 4}});
  const answer = aggregate.result();
  t.like(answer, {object: 'text_completion', usage: {total_tokens: 4}});
  t.deepEqual(answer['choices'], [
    {index: 0, text: 'ab', logprobs: {tokens: ['a', 'b'], token_logprobs: [-1, -2]}, finish_reason: 'length'},
  ]);
});

test('the usage of several answers is that of all of them, and their prompt is read once', t => {
  const usage = {prompt_tokens: 10, completion_tokens: 4, total_tokens: 14};
  const chunk = (index: number): JsonObject => ({choices: [{index, text: 'x', finish_reason: 'length'}], usage});
  const total = (answersPerPrompt: number): unknown => {
    const aggregate = new Aggregate('/v1/completions', answersPerPrompt);
    for (const index of [1, 0]) aggregate.add(chunk(index));
    return aggregate.result()['usage'];
  };
  t.deepEqual(total(2), {prompt_tokens: 10, completion_tokens: 8, total_tokens: 18});
  t.deepEqual(total(1), {prompt_tokens: 20, completion_tokens: 8, total_tokens: 28});
});

test('usage that is said again and again for one answer is the last one', t => {
  const said = (count: number): JsonObject => ({choices: [], usage: {completion_tokens: count}});
  t.like(chat(delta({content: 'a'}), said(1), said(2)), {usage: {completion_tokens: 2}});
});

test('what llama-server says for debugging has the whole text, and no progress of the prompt is left', t => {
  const verbose = {content: '', prompt: 'p', generation_settings: {stream: true}};
  const answer = chat({choices: [], prompt_progress: {total: 3}}, delta({content: 'ab'}), {
    choices: [],
    __verbose: verbose,
  });
  t.deepEqual(answer['__verbose'], {content: 'ab', prompt: 'p', generation_settings: {stream: false}});
  t.false('prompt_progress' in answer);
});

test('an answer that the client has begun stands whole in one object, where the engine would repeat it', t => {
  const continued = (fields: JsonObject, content = ' 3'): JsonObject => {
    const aggregate = new Aggregate('/v1/chat/completions', 1, '1 2');
    aggregate.add(delta({content}));
    aggregate.add({choices: [{index: 0, delta: {}, finish_reason: 'stop'}], ...fields});
    return aggregate.result();
  };
  t.like(continued({timings: {predicted_n: 1}}), {choices: [{message: {content: '1 2 3'}}]});
  t.like(continued({timings: {}}, '1 2 3'), {choices: [{message: {content: '1 2 3'}}]}, 'it did repeat it');
  t.like(continued({}), {choices: [{message: {content: ' 3'}}]}, 'vLLM tells no times, and does not repeat it');
});
