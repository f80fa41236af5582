import test from 'ava';
import {parseByteCount} from './byte-count.ts';

const good: readonly (readonly [number | string, number])[] = [
  ['2GiB', 2 * 1024 ** 3],
  ['16 GB', 16e9],
  ['1.5gib', 1.5 * 1024 ** 3],
  ['512MiB', 512 * 1024 ** 2],
  ['4096', 4096],
  [4096, 4096],
  ['0', 0],
];
for (const [text, bytes] of good)
  test(`${JSON.stringify(text)} is ${bytes} bytes`, t => t.is(parseByteCount(text), bytes));

for (const text of ['', 'GiB', '-1GiB', '2 giraffes', '1e9', 'NaN', '99999999999TiB']) {
  test(`"${text}" is no number of bytes`, t => t.is(parseByteCount(text), undefined));
}
