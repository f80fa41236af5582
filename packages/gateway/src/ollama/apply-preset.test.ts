import test from 'ava';
import {automatic, newRequestId} from '@hearsay/core';
import type {ClientRequest, Endpoint} from '@hearsay/core';
import {parseObject} from '../json.ts';
import {applyPreset} from './apply-preset.ts';
import type {Preset} from './known-model.ts';

const preset: Preset = {
  name: 'mine:latest',
  from: 'tiny',
  system: 'be',
  parameters: {num_predict: 3, temperature: 0, stop: ['x']},
  messages: [],
  license: '',
  madeWallMs: 0,
};

function request(endpoint: Endpoint, body: object, contentType?: string): ClientRequest {
  return {
    id: newRequestId({next: () => 0, bytes: length => new Uint8Array(length)}),
    model: 'mine',
    endpoint,
    needs: [],
    policy: automatic,
    body: Buffer.from(JSON.stringify(body)),
    contentType,
    traceparent: undefined,
  };
}

const sent = (applied: ClientRequest): unknown => parseObject(new TextDecoder().decode(applied.body));

const user = {role: 'user', content: 'hi'};

test('a chat gets the system text and the options that it does not have itself', t => {
  const applied = applyPreset(request('/v1/chat/completions', {messages: [user], temperature: 1}), preset);
  t.is(applied.model, 'tiny');
  t.deepEqual(sent(applied), {
    messages: [{role: 'system', content: 'be'}, user],
    n_predict: 3,
    temperature: 1,
    stop: ['x'],
  });
  const own = {role: 'developer', content: 'mine'};
  t.like(sent(applyPreset(request('/v1/chat/completions', {messages: [own, user]}), preset)), {messages: [own, user]});
});

test("Anthropic's system text stands beside the messages", t => {
  t.like(sent(applyPreset(request('/v1/messages', {messages: [user]}), preset)), {system: 'be', messages: [user]});
  t.like(sent(applyPreset(request('/v1/messages', {messages: [user], system: 'own'}), preset)), {system: 'own'});
});

test('a text completion gets the options only, and a form nothing but the model', t => {
  t.like(sent(applyPreset(request('/v1/completions', {prompt: 'a'}), preset)), {prompt: 'a', n_predict: 3});
  const form = request('/v1/audio/transcriptions', {}, 'multipart/form-data; boundary=x');
  t.deepEqual(applyPreset(form, preset), {...form, model: 'tiny'});
});
