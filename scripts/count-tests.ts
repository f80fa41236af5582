import {stripVTControlCharacters} from 'node:util';

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
}

/**
 * Counts what ava's default reporter says line by line. (Its TAP reporter, which would be easier to read, dies of a
 * test that calls process.exit or times out.) Whatever did not run to its end counts as failed.
 */
export class TestCounter {
  #passed = 0;
  #failed = 0;

  line(text: string): void {
    const line = stripVTControlCharacters(text);
    if (/^\s*✔ /u.test(line)) this.#passed += 1;
    this.#failed += failuresIn(line);
  }

  /** An exit code that nothing explains is a failure too: ava has died, or found no tests. */
  counts(exitCode: number): TestCounts {
    return {passed: this.#passed, failed: Math.max(this.#failed, exitCode === 0 ? 0 : 1)};
  }
}

/**
 * Every cross is one failure, of a test or of a whole file, except where it says how many tests a crash kept from
 * running. A time-out has a cross, and most often a line that says how many tests it has ended.
 */
function failuresIn(line: string): number {
  const remaining = /^\s*✘ (?<count>\d+) tests? remaining in /u.exec(line)?.groups?.['count'];
  if (remaining !== undefined) return Number(remaining);
  const pending = /^\s*(?<count>\d+) tests? remained pending after a timeout/u.exec(line)?.groups?.['count'];
  if (pending !== undefined) return Number(pending) - 1;
  return /^\s*✘ /u.test(line) ? 1 : 0;
}
