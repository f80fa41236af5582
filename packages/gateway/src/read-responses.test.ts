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
