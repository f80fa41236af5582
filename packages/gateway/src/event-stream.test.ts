import test from 'ava';
import fc from 'fast-check';
import {EventSplitter, isAtBoundary, judgeEnd, leadingError} from './event-stream.ts';
import type {StreamEnd} from './event-stream.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

test('C12: events come out whole however the bytes are split', t => {
  const text = 'data: {"a":"ä€😀"}\n\n: ping\n\ndata:b\r\n\r\nevent: x\nid: 1\ndata: c\ndata: d\n\ndata: [DONE]\n\n';
  const bytes = bytesOf(text);
  fc.assert(
    fc.property(fc.array(fc.integer({min: 1, max: 9}), {minLength: 1}), sizes => {
      const splitter = new EventSplitter();
      const events: string[] = [];
      for (let from = 0, turn = 0; from < bytes.length; turn += 1) {
        const size = sizes[turn % sizes.length] ?? 1;
        events.push(...splitter.push(bytes.subarray(from, from + size)).map(({name, data}) => `${name}|${data}`));
        from += size;
      }
      t.deepEqual(events, ['|{"a":"ä€😀"}', '|b', 'x|c\nd', '|[DONE]']);
    }),
  );
});

test('C13: an event of two megabytes is no problem', t => {
  const splitter = new EventSplitter();
  const data = 'x'.repeat(2_000_000);
  const bytes = bytesOf(`data: ${data}\n\n`);
  const events: string[] = [];
  for (let from = 0; from < bytes.length; from += 4096) {
    events.push(...splitter.push(bytes.subarray(from, from + 4096)).map(event => event.data));
  }
  t.deepEqual(events, [data]);
});

test('an event without an end is given up before it fills the memory', t => {
  const splitter = new EventSplitter();
  const piece = bytesOf('x'.repeat(1024 * 1024));
  t.throws(() => Array.from({length: 17}, () => splitter.push(piece)), {message: /larger than/u});
});

const ends: readonly (readonly [string, StreamEnd])[] = [
  ['data: {"a":1}\n\ndata: [DONE]\n\n', 'complete'],
  ['data: [DONE]\n\n', 'complete'],
  ['data:[DONE]\r\n\r\n', 'complete'],
  ['data: [DONE]', 'complete'],
  ['', 'cut'],
  ['data: {"a":1}\n\n', 'cut'],
  ['data: {"content":"data: [DONE]"}\n\n', 'cut'],
  ['data: [DON', 'cut'],
  ['data: {"error":{"code":500}}\n\n', 'failed'],
  ['event: error\ndata: {"code":500}\n\n', 'failed'],
  ['data: {"choices":[{"delta":{"content":"data: {\\"error\\":1}"}}]}\n\n', 'cut'],
];
for (const [text, end] of ends) {
  test(`a stream that ends with ${JSON.stringify(text.slice(-60))} is ${end}`, t => {
    t.is(judgeEnd(text), end);
  });
}

test('an event boundary is an empty line, also at the very beginning', t => {
  t.true(isAtBoundary(''));
  t.true(isAtBoundary('data: x\n\n'));
  t.true(isAtBoundary('data: x\r\n\r\n'));
  t.false(isAtBoundary('data: x\n'));
  t.false(isAtBoundary('data: x'));
});

test('R21: only a stream that begins with an error event is a failure from the start', t => {
  t.deepEqual(leadingError(bytesOf('data: {"error":{"code":500}}\n\n')), {error: {code: 500}});
  t.is(leadingError(bytesOf('data: {"choices":[]}\n\n')), undefined);
  t.is(leadingError(bytesOf('data: {"error":null,"choices":[]}\n\n')), undefined);
  t.is(leadingError(bytesOf('data: {"error":{"co')), undefined);
});
