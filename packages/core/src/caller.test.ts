import test from 'ava';
import {allows, matchesPattern} from './caller.ts';

const patterns: readonly (readonly [string, string, boolean])[] = [
  ['qwen', 'Qwen', true],
  ['qwen', 'qwen3', false],
  ['qwen*', 'qwen', true],
  ['*', '', true],
  ['*b', 'aab', true],
  ['a*b*c', 'a-b-b-c', true],
  ['ab*ba', 'aba', false],
  ['a*b*c', 'a-c-b', false],
  ['a.c', 'abc', false],
];
for (const [pattern, name, expected] of patterns) {
  test(`${pattern} ${expected ? 'matches' : 'does not match'} ${name}`, t => {
    t.is(matchesPattern(pattern, name), expected);
  });
}

test('no list allows everything, an empty one nothing', t => {
  t.true(allows(undefined, ['x']));
  t.false(allows([], ['x']));
});
