import test from 'ava';
import type {JsonObject} from '../json.ts';
import {sniff} from './media.ts';
import {translateMessages} from './translate-messages.ts';

const png = Buffer.from('\x89PNG\r\n\x1a\n0000', 'latin1').toString('base64');
const webp = Buffer.from('RIFF0000WEBPVP8 ', 'latin1').toString('base64');
const wav = Buffer.from('RIFF0000WAVEfmt ', 'latin1').toString('base64');

function messagesOf(list: readonly unknown[]): readonly JsonObject[] {
  const translated = translateMessages(list);
  if (translated.kind === 'problem') throw new Error(translated.message);
  return translated.messages;
}

test('C58: arguments of tool calls become text, whether they came as an object or as text', t => {
  for (const given of [{city: 'Paris'}, '{"city":"Paris"}']) {
    const [message] = messagesOf([
      {role: 'assistant', content: '', tool_calls: [{function: {name: 'weather', arguments: given}}]},
    ]);
    t.like(message, {
      tool_calls: [{type: 'function', function: {name: 'weather', arguments: '{"city":"Paris"}'}}],
    });
  }
});

test('results of tools get the ids of their calls: by name, or in order', t => {
  const call = (name: string) => ({function: {name, arguments: {}}});
  const [asked, first, second] = messagesOf([
    {role: 'assistant', tool_calls: [call('a'), call('b')]},
    {role: 'tool', content: 'B', tool_name: 'b'},
    {role: 'tool', content: 'A'},
  ]);
  t.like(asked, {tool_calls: [{id: 'call_0_0'}, {id: 'call_0_1'}]});
  t.like(first, {role: 'tool', tool_call_id: 'call_0_1', name: 'b'});
  t.like(second, {role: 'tool', tool_call_id: 'call_0_0', name: 'a'});
});

test('ids that the client gives stay', t => {
  const [, result] = messagesOf([
    {role: 'assistant', tool_calls: [{id: 'x', function: {name: 'a', arguments: {}}}]},
    {role: 'tool', content: 'A', tool_call_id: 'x'},
  ]);
  t.like(result, {tool_call_id: 'x', name: 'a'});
});

test('images become parts with the type that their bytes have, after the text', t => {
  const [message] = messagesOf([{role: 'user', content: 'look', images: [png, '/9j/4AAQSkZJRg==']}]);
  t.deepEqual(message?.['content'], [
    {type: 'text', text: 'look'},
    {type: 'image_url', image_url: {url: `data:image/png;base64,${png}`}},
    {type: 'image_url', image_url: {url: 'data:image/jpeg;base64,/9j/4AAQSkZJRg=='}},
  ]);
});

test('sound among the images is sent as sound', t => {
  const translated = translateMessages([{role: 'user', content: '', images: [wav]}]);
  t.like(translated, {hasAudio: true, hasImage: false});
  t.like(messagesOf([{role: 'user', images: [wav]}])[0], {
    content: [{type: 'input_audio', input_audio: {format: 'wav', data: wav}}],
  });
});

test('a WebP image is refused by its name, because llama-server cannot decode it', t => {
  const refused = translateMessages([{role: 'user', content: 'look', images: [webp]}]);
  t.like(refused, {kind: 'problem', status: 400});
  t.regex(refused.kind === 'problem' ? refused.message : '', /WebP.*PNG or JPEG/u);
});

for (const [what, message] of [
  ['text instead of an object', 'hi'],
  ['a number for content', {role: 'user', content: 4}],
  ['an image that is no text', {role: 'user', content: 'x', images: [4]}],
  ['an image that is no base64', {role: 'user', content: 'x', images: ['<svg>']}],
  ['a tool call without a name', {role: 'assistant', tool_calls: [{function: {}}]}],
] as const) {
  test(`a message with ${what} is a 400`, t => {
    t.like(translateMessages([message]), {kind: 'problem', status: 400});
  });
}

test('roles are taken in any case, and thoughts of before stay with their message', t => {
  t.like(messagesOf([{role: 'Assistant', content: 'x', thinking: 'hm'}])[0], {
    role: 'assistant',
    content: 'x',
    reasoning_content: 'hm',
  });
});

for (const [head, type] of [
  ['GIF89a', 'gif'],
  ['BM12', 'bmp'],
  ['fLaC', 'flac'],
  ['ID3\x04', 'mp3'],
  ['\xff\xfb\x90', 'mp3'],
  ['\xff\xd8\xff', 'jpeg'],
  ['????', 'jpeg'],
] as const) {
  test(`bytes that begin with ${JSON.stringify(head)} are ${type}`, t => {
    t.is(sniff(Buffer.from(head, 'latin1')), type);
  });
}
