import {Fault} from '@hearsay/core';
import test from 'ava';
import {brokenEnd, causeOfEnd, hasEndMark} from './broken-end.ts';

/** Those of a long answer begin in the middle of something. */
const end = (text: string) => ({text, isAll: /^(?:event|data|[{[])/u.test(text)});

const stream = 'text/event-stream; charset=utf-8';

for (const [what, contentType, tail] of [
  ['a chat', stream, 'data: {"choices":[]}\n\ndata: [DONE]\n\n'],
  ['messages', stream, 'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
  ['a response', stream, 'event: response.completed\ndata: {"type":"response.completed","response":{}}\n\n'],
  ['a completion', stream, 'data: {"index":0,"content":"","stop":true,"timings":{}}\n\n'],
  ['a transcript', stream, 'data: {"type":"transcript.text.done","text":"a"}\n\n'],
  ['a transcript with names', stream, 'event: transcript.text.done\ndata: {"type":"transcript.text.done"}\n\n'],
  ['a transcript in bare texts', stream, 'data: {"text":"a"}\n\ndata: {"text": "b"}\n\n'],
  ['an object', 'application/json', '{"data":[]}\n'],
  ['a long response', stream, 'ng text"}]}}\n\n'],
  ['a long object', 'application/json', '0.1,0.2]}]}'],
  ['a text', 'text/plain', 'whatever'],
] as const) {
  test(`${what} that is whole is not broken`, t => t.is(brokenEnd(contentType, end(tail), 'a'), undefined));
}

for (const [what, contentType, tail] of [
  ['a chat that stops', stream, 'data: {"choices":[{"delta":{"content":"data: [DONE]"}}]}\n\n'],
  ['messages that stop', stream, 'event: content_block_stop\ndata: {"type":"content_block_stop"}\n\n'],
  ['a transcript that stops', stream, 'data: {"type":"transcript.text.delta","delta":"a"}\n\n'],
  ['an error event', stream, 'data: {"choices":[]}\n\ndata: {"error":{"message":"no"}}\n\n'],
  ['a named error event', stream, 'event: ping\ndata: {}\n\nevent: error\ndata: {"message":"no"}\n\n'],
  ['half an object', 'application/json', '{"data":["a'],
  [
    'a response that stops',
    stream,
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta"}\n\n',
  ],
  ['half an object with another', 'application/json', '{"data":["a{"error":{}}'],
] as const) {
  test(`${what} is broken`, t => t.is(brokenEnd(contentType, end(tail), 'a')?.code, 'INTERRUPTED'));
}

test('law 10: what breaks behind the end mark of a stream takes nothing from the client, so that it is whole', t => {
  t.true(hasEndMark(stream, 'data: {"choices":[]}\n\ndata: [DONE]\n\n'));
  t.true(hasEndMark(stream, 'event: message_stop\ndata: {"type":"message_stop"}\n\n'));
  t.true(hasEndMark(stream, 'event: response.completed\ndata: {"type":"response.completed"}\n\n'));
  t.false(hasEndMark(stream, 'data: {"choices":[{"delta":{"content":"data: [DONE]"}}]}\n\n'));
  t.false(hasEndMark(stream, 'event: content_block_stop\ndata: {}\n\nevent: message_stop\n'));
  t.true(hasEndMark(stream, 'data: {"type":"transcript.text.done","text":"a"}\n\n'));
  t.false(hasEndMark(stream, 'data: {"text":"a"}\n\n'), 'more of them may come');
  t.false(hasEndMark(stream, 'ng text'));
  t.false(hasEndMark('application/json', '{"data":[]}\n'));
});

const left = new Fault('CANCELLED', 'the client went away');

test('law 10: a client that leaves when it has the end mark has its answer, and one that leaves before has not', t => {
  const answer = {contentType: stream, status: 200, nodeName: 'a', isClientGone: true};
  t.is(causeOfEnd(left, {...answer, ...end('data: {"choices":[]}\n\ndata: [DONE]\n\n')}), undefined);
  t.is(causeOfEnd(left, {...answer, ...end('data: {"choices":[]}\n\n')}), left);
});

test('whoever stops reading while its client is there judges by what has come', t => {
  const answer = {contentType: stream, status: 200, nodeName: 'a', isClientGone: false};
  t.is(causeOfEnd(left, {...answer, ...end('data: [DONE]\n\n')}), undefined);
  t.like(causeOfEnd(left, {...answer, ...end('data: {"error":{"message":"no"}}\n\n')}), {code: 'INTERRUPTED'});
  const cut = new Fault('INTERRUPTED', 'a broke off');
  t.is(causeOfEnd(cut, {...answer, ...end('data: {"choices":[]}\n\n')}), cut);
});
