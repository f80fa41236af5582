import {exitCodes} from './exit-codes.ts';
import {gatherHealth} from './gather-health.ts';
import type {HealthQuestion} from './gather-health.ts';
import {judgeHealth, worstOf} from './judge-health.ts';
import type {Check, Grade} from './judge-health.ts';
import {printable} from './tables.ts';
import type {Terminal} from './terminal.ts';

const exitCodeOfGrade: Readonly<Record<Grade, number>> = {
  ok: exitCodes.ok,
  warning: exitCodes.warning,
  problem: exitCodes.failure,
};

/** `hearsay doctor`: prints one line a check and resolves with the exit code, which is that of the worst. */
export async function doctor(question: HealthQuestion & {readonly json: boolean}, terminal: Terminal): Promise<number> {
  const checks = judgeHealth(await gatherHealth(question));
  const worst = worstOf(checks);
  terminal.out(question.json ? `${JSON.stringify({worst, checks}, undefined, 2)}\n` : checkLines(checks));
  return exitCodeOfGrade[worst];
}

/** Pure: `warning  mesh port  4328 is taken by …; to do: …`. */
export function checkLines(checks: readonly Check[]): string {
  const width = Math.max(...checks.map(({subject}) => subject.length));
  const lines = checks.map(({subject, grade, finding, remedy}) => {
    const what = printable(remedy === undefined ? finding : `${finding}. To do: ${remedy}`);
    return `${grade.padEnd('problem'.length)}  ${subject.padEnd(width)}  ${what}\n`;
  });
  return lines.join('');
}
