import test from 'ava';
import {newRequestId} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {parseObject} from './json.ts';
import {responses} from './read-responses.ts';

function read(body: object): ReturnType<typeof responses.read> {
  const frame = {
    id: newRequestId(realEnvironment().random),
    policy: undefined,
    traceparent: undefined,
    contentType: undefined,
  };
  return responses.read(Buffer.from(JSON.stringify({model: 'm', ...body})), frame);
}

function needsOf(input: unknown): readonly string[] {
  const call = read({input});
  return call.kind === 'call' ? call.request.needs : [call.message];
}

const image = {type: 'input_image', image_url: 'data:image/png;base64,AAAA'};

test('an image needs a model that sees, in a message and in what a tool gave back', t => {
  t.deepEqual(needsOf('x'), ['chat']);
  t.deepEqual(needsOf([{role: 'user', content: [{type: 'input_text', text: 'x'}]}]), ['chat']);
  t.deepEqual(needsOf([{role: 'user', content: [image]}]), ['chat', 'vision']);
  t.deepEqual(needsOf([{type: 'function_call_output', call_id: 'c', output: [image]}]), ['chat', 'vision']);
  t.deepEqual(needsOf([{type: 'function_call_output', call_id: 'c', output: 'x'}]), ['chat']);
});

test('the form that a text shall have goes on where llama-server reads it, and a form without its schema is refused', t => {
  const sent = (text: unknown): unknown => {
    const call = read({input: 'x', text});
    if (call.kind !== 'call') return call.param;
    const {response_format: form} = parseObject(Buffer.from(call.request.body).toString()) ?? {};
    return form;
  };
  const schema = {type: 'object'};
  t.deepEqual(sent({format: {type: 'json_schema', name: 'n', strict: true, schema}}), {
    type: 'json_schema',
    json_schema: {name: 'n', strict: true, schema},
  });
  t.deepEqual(sent({format: {type: 'json_object'}}), {type: 'json_object'});
  t.is(sent({verbosity: 'low'}), undefined);
  t.is(sent(undefined), undefined);
  t.is(sent({format: {type: 'json_schema', name: 'n'}}), 'text.format.schema');
});

test('a form that nobody could give is refused by its name, and never looked past', t => {
  const refused = (body: object): unknown => {
    const call = read({input: 'x', ...body});
    return call.kind === 'problem' ? [call.status, call.param] : call.kind;
  };
  for (const text of ['json', 5, [], true]) t.deepEqual(refused({text}), [400, 'text'], JSON.stringify(text));
  for (const format of ['json_object', 5, []]) t.deepEqual(refused({text: {format}}), [400, 'text.format']);
  for (const type of ['grammar', 5, undefined]) {
    t.deepEqual(refused({text: {format: {type, schema: {}}}}), [400, 'text.format.type']);
  }
  for (const schema of [null, 'x', true, []]) {
    t.deepEqual(refused({text: {format: {type: 'json_schema', name: 'n', schema}}}), [400, 'text.format.schema']);
  }
  const twice = {text: {format: {type: 'text'}}, response_format: {type: 'json_object'}};
  t.deepEqual(refused(twice), [400, 'response_format']);
  for (const text of [null, {}, {format: null}]) {
    t.is(refused({text, response_format: {type: 'json_object'}}), 'call', 'none is asked for here');
  }
});
