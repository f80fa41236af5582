import test from 'ava';
import {ByteTail} from './byte-tail.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

test('the tail of a stream is the same whether it came in single bytes or at once', t => {
  const text = `data: ${'ü'.repeat(5000)}\n\ndata: [DONE]\n\n`;
  const single = new ByteTail();
  for (const byte of bytesOf(text)) single.add(Uint8Array.of(byte));
  const atOnce = new ByteTail();
  atOnce.add(bytesOf(text));
  t.is(single.text(), atOnce.text());
  t.true(single.text().endsWith('üüü\n\ndata: [DONE]\n\n'));
  t.false(single.isAll);
  t.false(atOnce.isAll);
});

test('a short stream is all in its tail', t => {
  const tail = new ByteTail();
  t.is(tail.text(), '');
  for (const piece of ['{"a":', '1}']) tail.add(bytesOf(piece));
  t.is(tail.text(), '{"a":1}');
  t.true(tail.isAll);
});
