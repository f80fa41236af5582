import test from 'ava';
import {parseKeepAlive} from './keep-alive.ts';

const forever = Number.POSITIVE_INFINITY;

const forms: readonly (readonly [unknown, number | 'unset' | undefined])[] = [
  ['5m', 300_000],
  [300, 300_000],
  [300.5, 300_500],
  ['300', 300_000],
  [-1, forever],
  ['-1', forever],
  ['-1m', forever],
  [0, 0],
  ['0', 0],
  ['0s', 0],
  ['1h30m', 5_400_000],
  ['300ms', 300],
  ['1.5h', 5_400_000],
  ['3600s', 3_600_000],
  [1e12, 1e15],
  ['', 'unset'],
  [null, 'unset'],
  [undefined, 'unset'],
  [true, undefined],
  ['soon', undefined],
  ['5 m', undefined],
  ['5d', undefined],
  [Number.NaN, undefined],
  [{}, undefined],
];

for (const [given, meant] of forms) {
  test(`R103: keep_alive ${JSON.stringify(given) ?? 'left out'} (${typeof given}) means ${String(meant)}`, t => {
    t.is(parseKeepAlive(given), meant);
  });
}
