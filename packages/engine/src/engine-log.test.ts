import test from 'ava';
import {EngineLog} from './engine-log.ts';

function filled(count: number, text: (index: number) => string): EngineLog {
  const log = new EngineLog();
  for (let index = 0; index < count; index += 1) log.add(text(index));
  return log;
}

test('pages follow each other without a gap and end with what is newest', t => {
  const log = filled(250, index => `line ${index}`);
  const pages = [log.page(0), log.page(100), log.page(200)];
  t.deepEqual(
    pages.map(({first, next}) => [first, next]),
    [
      [0, 100],
      [100, 200],
      [200, 250],
    ],
  );
  t.is(pages[2]?.lines.at(-1), 'line 249');
  t.deepEqual(log.page(250), {lines: [], first: 250, next: 250});
  log.add('line 250');
  t.deepEqual(log.page(250), {lines: ['line 250'], first: 250, next: 251});
});

test('R88: however much an engine writes, a thousand lines are kept, and a reader sees that it has missed some', t => {
  const log = filled(5_000, index => `line ${index}`);
  t.deepEqual(log.page(0).lines[0], 'line 4000');
  t.is(log.page(0).first, 4_000);
});

test('a page of the largest characters stays below what one message may have', t => {
  const log = filled(200, () => '\u{10ffff}'.repeat(1_000));
  const {lines, next} = log.page(0);
  t.true(lines.length > 10);
  t.true(Buffer.byteLength(lines.join('')) <= 48 * 1024);
  t.is(log.page(next).first, lines.length);
});

test('a number that no line has yet gives nothing, and reading goes on from there', t => {
  t.deepEqual(filled(3, String).page(99), {lines: [], first: 3, next: 3});
});
