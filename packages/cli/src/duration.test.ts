import test from 'ava';
import {parseDuration} from './duration.ts';

const durations: readonly (readonly [string | number, number])[] = [
  ['5m', 300_000],
  ['300', 300_000],
  [300, 300_000],
  [0.5, 500],
  ['1h30m', 5_400_000],
  ['500ms', 500],
  ['1.5h', 5_400_000],
  ['0', 0],
  ['0s', 0],
  [-1, Infinity],
  ['-1', Infinity],
  ['-1m', Infinity],
];
for (const [text, ms] of durations) {
  test(`the duration ${JSON.stringify(text)} is ${ms} ms`, t => t.is(parseDuration(text), ms));
}

test('what is no duration is refused', t => {
  for (const text of ['', '5 minutes', 'm', '5x', '1e9', NaN, Infinity])
    t.is(parseDuration(text), undefined, String(text));
});
