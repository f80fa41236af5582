import test from 'ava';
import {TestCounter} from '../../scripts/count-tests.ts';
import type {TestCounts} from '../../scripts/count-tests.ts';

function countsOf(output: string, exitCode: number): TestCounts {
  const counter = new TestCounter();
  for (const line of output.split('\n')) counter.line(line);
  return counter.counts(exitCode);
}

test('every tick has passed and every cross has failed, in colour too', t => {
  const output = `
  \u001B[32m✔\u001B[39m a › good (1.2s)
  ✘ [fail]: a › bad Reason with 5 tests remaining in it
  - [skip] skipped
  - [todo] todo
  ─
  a › bad
  ✔bad is not at its place here
  1 test failed
  1 test skipped`;
  t.deepEqual(countsOf(output, 1), {passed: 1, failed: 1});
});

test('all is well only when ava says so too', t => {
  t.deepEqual(countsOf('  ✔ a\n  ✔ b\n\n  2 tests passed', 0), {passed: 2, failed: 0});
  t.deepEqual(countsOf('  ✔ a\n  ✔ b\n', 1), {passed: 2, failed: 1});
  t.deepEqual(countsOf('', 1), {passed: 0, failed: 1});
});

test('a file that crashes is a failure, and so is each test that it kept from running', t => {
  const output = `  ✔ fine
  ✘ Exiting due to process.exit() when running a.test.ts
  ✘ 2 tests remaining in a.test.ts
  ✘ b.test.ts exited with a non-zero exit code: 1
  ✘ No tests found in c.test.ts, make sure to import "ava" at the top of your test file`;
  t.deepEqual(countsOf(output, 1), {passed: 1, failed: 5});
});

test('tests that hang are failures, as many as ava has ended', t => {
  const hanging = '  ✔ ok\n  ✘ Timed out while running tests\n  ◌ hangs\n';
  t.deepEqual(countsOf(hanging, 1), {passed: 1, failed: 1});
  t.deepEqual(countsOf(`${hanging}  3 tests remained pending after a timeout`, 1), {passed: 1, failed: 3});
});
