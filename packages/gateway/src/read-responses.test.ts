import test from 'ava';
import {newRequestId} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {responses} from './read-responses.ts';

function needsOf(input: unknown): readonly string[] {
  const frame = {
    id: newRequestId(realEnvironment().random),
    policy: undefined,
    traceparent: undefined,
    contentType: undefined,
  };
  const call = responses.read(Buffer.from(JSON.stringify({model: 'm', input})), frame);
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
