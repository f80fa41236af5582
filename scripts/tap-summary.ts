/** Reads ava's TAP output line by line and says what became of the tests. */
export interface TapSummary {
  /** Takes one line; returns what to show of it. */
  line(text: string): string | undefined;
  /** How many passed and failed, given the exit code of ava. Whatever did not run to its end counts as failed. */
  result(exitCode: number): TapResult;
}

export interface TapResult {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export function tapSummary(): TapSummary {
  const seen = {passed: 0, failed: 0, skipped: 0, todo: 0};
  const told: {pass?: number; fail?: number} = {};

  return {
    line(text) {
      const test = /^(?<not>not )?ok \d+ - (?<title>.*?)(?<directive> # (?:SKIP|TODO))?$/u.exec(text)?.groups;
      if (test !== undefined) {
        const kind = kindOf(test['not'] !== undefined, test['directive']);
        seen[kind] += 1;
        return `${marks[kind]} ${test['title'] ?? ''}`;
      }
      const total = /^# (?<kind>pass|fail) (?<count>\d+)$/u.exec(text)?.groups;
      if (total?.['kind'] === 'pass') told.pass = Number(total['count']);
      if (total?.['kind'] === 'fail') told.fail = Number(total['count']);
      return total !== undefined || /^(?:TAP version|1\.\.|# (?:tests|skip) )\d*/u.test(text) || text === ''
        ? undefined
        : text;
    },
    result(exitCode) {
      // Without totals ava itself has died; in them, tests that a crash kept from running are failures.
      const failedOfTotal = told.fail === undefined ? 1 : told.fail - seen.todo;
      const failed = Math.max(seen.failed, failedOfTotal, exitCode === 0 ? 0 : 1);
      return {passed: Math.min(seen.passed, told.pass ?? seen.passed), failed, skipped: seen.skipped + seen.todo};
    },
  };
}

const marks = {passed: '✔', failed: '✖', skipped: '- (skipped)', todo: '- (to do)'} as const;

function kindOf(isNot: boolean, directive: string | undefined): keyof typeof marks {
  if (directive === ' # SKIP') return 'skipped';
  if (directive === ' # TODO') return 'todo';
  return isNot ? 'failed' : 'passed';
}
