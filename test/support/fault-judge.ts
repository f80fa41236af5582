import type {ExecutionContext} from 'ava';
import type {Outcome, RequestSummary} from '@hearsay/core';
import type {Asked, AskedAnswer} from './ask.ts';
import {piecesIn, piecesSeen} from './fault-cases.ts';
import type {FaultCase, FaultDialect} from './fault-cases.ts';

/** Its client has heard all that its engine says. */
export function isHeard(each: FaultCase, asked: Asked | undefined): boolean {
  return piecesIn(asked?.heard() ?? '').length >= piecesSeen(each).length;
}

/** Status, shape, and what had been said: once, and followed by an error. */
export function judge(t: ExecutionContext, {errorBody}: FaultDialect, each: FaultCase, answer?: AskedAnswer): void {
  const {status: code, text} = answer ?? {status: 0, text: 'no answer'};
  const {label, endpoint} = each;
  const seen = piecesSeen(each);
  const said = `${label}: ${code} ${text}`;
  if (endpoint.estimates) {
    t.is(code, 200, said);
  } else if (seen.length > 0) {
    t.is(code, 200, said);
    t.regex(text, endpoint.stream?.errorEnd ?? /never/u, label);
    t.notRegex(text, endpoint.stream?.endMark ?? /never/u, label);
    t.deepEqual(piecesIn(text), seen, `${label}: each piece once`);
  } else {
    t.true(code >= 500, said);
    t.regex(text, errorBody, said);
  }
}

/** Output that was cut is interrupted, and what never had any has failed. */
export function judgeJournal(
  t: ExecutionContext,
  journal: readonly RequestSummary[],
  cases: readonly FaultCase[],
  answers: readonly AskedAnswer[],
): void {
  const byId = new Map<string, RequestSummary>(journal.map(summary => [summary.id, summary]));
  for (const [index, each] of cases.entries()) {
    const summary = byId.get(answers[index]?.request ?? '');
    const said = `${each.label}: ${summary?.message}`;
    t.is(summary?.attempts, 1, said);
    if (each.endpoint.estimates) t.not(summary?.outcome, 'finished', said);
    else t.is(summary?.outcome, outcomeOf(each), said);
  }
}

function outcomeOf({mishap: {at, how}}: FaultCase): Outcome {
  const hasOutput = (at === 'mid-token' || at === 'before the end mark') && how !== 'gzip';
  return hasOutput ? 'interrupted' : 'failed';
}
