import test from 'ava';
import {nextKeepAlive, parseKeepAlive} from './keep-alive.ts';

const minute = 60_000;
const good: readonly (readonly [value: unknown, ms: number])[] = [
  ['5m', 5 * minute],
  [300, 5 * minute],
  [300.5, 300_500],
  ['300', 5 * minute],
  [-1, Infinity],
  ['-1', Infinity],
  ['-1m', Infinity],
  [0, 0],
  [-0, 0],
  ['0', 0],
  ['0s', 0],
  ['-0', 0],
  ['1h30m', 90 * minute],
  [' 10M ', 10 * minute],
  ['500ms', 500],
  ['1.5h', 90 * minute],
  [1e12, Infinity],
  [Infinity, Infinity],
];
for (const [value, ms] of good) {
  test(`R103: keep_alive ${typeof value} ${Object.is(value, -0) ? '-0' : String(value)} is ${ms} ms`, t =>
    t.deepEqual(parseKeepAlive(value), {kind: 'given', ms}));
}

test('R103: keep_alive null is as good as none', t => {
  t.deepEqual(parseKeepAlive(null), {kind: 'unset'});
  t.deepEqual(parseKeepAlive(undefined), {kind: 'unset'});
});

for (const value of [
  '',
  'forever',
  '5 m',
  'm',
  '1h30',
  '--1',
  '1e3',
  true,
  {},
  [],
  Number.NaN,
  'x'.repeat(10_000),
] as const) {
  const shown = `${typeof value} ${JSON.stringify(value)}`.slice(0, 30);
  test(`R103: keep_alive ${shown} is refused with what would do`, t => {
    const parsed = parseKeepAlive(value);
    t.is(parsed.kind, 'bad');
    t.regex(parsed.kind === 'bad' ? parsed.message : '', /^keep_alive .* is no duration; use 5m, /u);
    t.true(JSON.stringify(parsed).length < 250);
  });
}

const limits = {usualMs: 5 * minute, minMs: minute, maxMs: 60 * minute};

test("the owner's minimum and maximum win over what a request asks for", t => {
  t.is(nextKeepAlive(undefined, 0, limits), minute);
  t.is(nextKeepAlive(undefined, Infinity, limits), 60 * minute);
  t.is(nextKeepAlive(undefined, 10 * minute, limits), 10 * minute);
});

test('a request that asks for nothing never shortens a longer keep-alive, and one that asks does', t => {
  t.is(nextKeepAlive(30 * minute, undefined, limits), 30 * minute);
  t.is(nextKeepAlive(minute, undefined, limits), 5 * minute);
  t.is(nextKeepAlive(undefined, undefined, limits), 5 * minute);
  t.is(nextKeepAlive(30 * minute, 2 * minute, limits), 2 * minute);
});
