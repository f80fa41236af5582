import test from 'ava';
import {doubtSelf, noDoubt} from './self-doubt.ts';
import type {Listening} from './self-doubt.ts';

function look(nowMs: number, changes: Partial<Listening> = {}): Listening {
  return {nowMs, lateMs: 0, others: 5, silent: 0, ...changes};
}

test('a node that hears well doubts nothing, also when one of many, or the only other, is silent', t => {
  t.is(doubtSelf(noDoubt, look(0, {lateMs: 40, silent: 4})), noDoubt);
  t.is(doubtSelf(noDoubt, look(0, {others: 1, silent: 1})), noDoubt);
  t.is(doubtSelf(noDoubt, look(0, {others: 0, silent: 0})), noDoubt);
});

test('a stall gives the others at least its own length, for a while', t => {
  const doubt = doubtSelf(noDoubt, look(5000, {lateMs: 4000}));
  t.true(doubt.graceMs >= 4000);
  t.is(doubtSelf(doubt, look(6000)), doubt);
  t.is(doubtSelf(doubt, look(doubt.untilMs)), noDoubt);
});

test('stalls one after the other add up, and not without end', t => {
  let doubt = noDoubt;
  let last = 0;
  for (let nowMs = 0; nowMs < 4000; nowMs += 1000) {
    doubt = doubtSelf(doubt, look(nowMs, {lateMs: 1000}));
    t.true(doubt.graceMs > last);
    last = doubt.graceMs;
  }
  for (let nowMs = 4000; nowMs < 100_000; nowMs += 1000) doubt = doubtSelf(doubt, look(nowMs, {lateMs: 1000}));
  t.is(doubt.graceMs, 30_000);
});

test('when all fall silent at once they get more time, but the same however long it lasts', t => {
  let doubt = doubtSelf(noDoubt, look(0, {silent: 5}));
  const {graceMs} = doubt;
  t.true(graceMs > 0);
  for (let nowMs = 0; nowMs < 60_000; nowMs += 1000) doubt = doubtSelf(doubt, look(nowMs, {silent: 5}));
  t.is(doubt.graceMs, graceMs);
});
