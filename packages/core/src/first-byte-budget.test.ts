import test from 'ava';
import {asked, candidate, learned} from '../../../test/support/builders.ts';
import type {Candidate} from './candidates.ts';
import {firstByteBudgetMs} from './first-byte-budget.ts';
import {rank} from './rank.ts';

const limits = {firstByteMsMin: 10_000, firstByteMsMax: 300_000};
const budget = (changes: Partial<Candidate>): number =>
  firstByteBudgetMs(rank([candidate('A', {state: 'ready', ...changes})], asked())[0]?.cost, limits);

test('a node gets several times what was measured of it, and more when that was guessed', t => {
  // 4000 bytes are 1000 tokens: 10 s at 100 tokens a second, 2 s at the guess of 500.
  t.true(Math.abs(budget({learned: learned({prefillTps: 100})}) - 40_000) < 100);
  t.true(Math.abs(budget({}) - 20_000) < 100);
});

test('the budget is bounded below and above', t => {
  t.is(budget({learned: learned()}), 10_000);
  t.is(budget({waitMs: 1e9, learned: learned()}), 300_000);
  t.is(firstByteBudgetMs(undefined, limits), 300_000);
});
