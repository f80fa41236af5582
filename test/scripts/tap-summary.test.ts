import test from 'ava';
import {tapSummary} from '../../scripts/tap-summary.ts';
import type {TapResult} from '../../scripts/tap-summary.ts';

function resultOf(tap: string, exitCode: number): TapResult {
  const summary = tapSummary();
  for (const line of tap.split('\n')) summary.line(line);
  return summary.result(exitCode);
}

test('passed, failed, skipped and open tests are counted apart', t => {
  const tap = `TAP version 13
ok 1 - a
not ok 2 - b
  ---
    message: not ok 9 - inside a message
  ...
ok 3 - c # SKIP
not ok 4 - d # TODO

1..4
# tests 3
# pass 1
# skip 1
# fail 2
`;
  t.deepEqual(resultOf(tap, 1), {passed: 1, failed: 1, skipped: 2});
});

test('all is well only when everything passed and ava says so', t => {
  const tap = 'ok 1 - a\nok 2 - b\n\n1..2\n# tests 2\n# pass 2\n# fail 0\n';
  t.deepEqual(resultOf(tap, 0), {passed: 2, failed: 0, skipped: 0});
  t.deepEqual(resultOf(tap, 1), {passed: 2, failed: 1, skipped: 0});
});

test('tests that a crash has kept from running are failures', t => {
  const tap =
    'ok 1 - a\nnot ok 2 - b.test.ts exited with a non-zero exit code: 1\n\n1..5\n# tests 5\n# pass 1\n# fail 5\n';
  t.deepEqual(resultOf(tap, 1), {passed: 1, failed: 5, skipped: 0});
});

test('output that ends without totals is a failure, whatever the exit code', t => {
  t.deepEqual(resultOf('TAP version 13\nok 1 - a\n', 0), {passed: 1, failed: 1, skipped: 0});
  t.deepEqual(resultOf('', 0), {passed: 0, failed: 1, skipped: 0});
});

test('a title that looks like a directive does not hide a failure', t => {
  t.deepEqual(resultOf('not ok 1 - mentions # TODO inside\n# pass 0\n# fail 1\n', 1), {
    passed: 0,
    failed: 1,
    skipped: 0,
  });
});

test('titles, comments and the reasons of failures are shown, counters are not', t => {
  const summary = tapSummary();
  t.is(summary.line('ok 1 - a is b'), '✔ a is b');
  t.is(summary.line('not ok 2 - c is d'), '✖ c is d');
  t.is(summary.line('    message: no'), '    message: no');
  t.is(summary.line('#   said by t.log'), '#   said by t.log');
  for (const line of ['TAP version 13', '1..2', '# tests 2', '# pass 1', '# fail 1'])
    t.is(summary.line(line), undefined);
});
