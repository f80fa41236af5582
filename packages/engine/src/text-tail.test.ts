import test from 'ava';
import {TextTail} from './text-tail.ts';

function tailOf(linesMax: number, ...pieces: readonly string[]): readonly string[] {
  const tail = new TextTail(linesMax);
  for (const piece of pieces) tail.push(new TextEncoder().encode(piece));
  return tail.lines();
}

test('the last lines are kept, however the text was cut into pieces', t => {
  t.deepEqual(tailOf(2, 'one\ntw', 'o\r\nthr', 'ee\n\nfo'), ['three', 'fo']);
});

test('a line without an end does not grow', t => {
  const lines = tailOf(3, ...Array.from({length: 100}, () => 'x'.repeat(1_000)));
  t.is(lines.length, 1);
  t.true((lines[0] ?? '').length <= 500);
});
