import test from 'ava';
import {formatBytes} from '@hearsay/core';
import {formatAgo, formatFromNow} from './human.ts';

const sizes: readonly (readonly [number, string])[] = [
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [737_500_000, '737.5 MB'],
  [999_949_999, '999.9 MB'],
  [999_950_000, '1.0 GB'],
  [4_100_000_000, '4.1 GB'],
  [128e9, '128.0 GB'],
  [2.5e15, '2500.0 TB'],
];
for (const [bytes, text] of sizes) {
  test(`S48: ${bytes} bytes read as ${text}`, t => t.is(formatBytes(bytes), text));
}

const pasts: readonly (readonly [number, string])[] = [
  [0, 'just now'],
  [4.9, 'just now'],
  [5, '5 seconds ago'],
  [60, '1 minute ago'],
  [179, '2 minutes ago'],
  [3600, '1 hour ago'],
  [86_400, '24 hours ago'],
  [3 * 86_400, '3 days ago'],
];
for (const [seconds, text] of pasts) {
  test(`S51: what began ${seconds} s ago began ${text}`, t => t.is(formatAgo(seconds), text));
}

const futures: readonly (readonly [number, string])[] = [
  [299, '4 minutes from now'],
  [300, '5 minutes from now'],
  [59.9, '59 seconds from now'],
  [1, '1 second from now'],
  [0.4, 'now'],
];
for (const [seconds, text] of futures) {
  test(`S53: what ends in ${seconds} s ends ${text}`, t => t.is(formatFromNow(seconds), text));
}
