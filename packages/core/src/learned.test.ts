import test from 'ava';
import {isNews, learn, nothingLearned} from './learned.ts';

test('the first measurement counts whole, and what was not measured stays unknown', t => {
  t.deepEqual(learn(nothingLearned, {decodeTps: 40}), {...nothingLearned, decodeTps: 40});
});

test('a speed rises at once and falls slowly', t => {
  const once = learn(nothingLearned, {decodeTps: 40});
  t.is(learn(once, {decodeTps: 60}).decodeTps, 60);
  t.is(learn(once, {decodeTps: 20}).decodeTps, 36);
});

test('a node that has become slow is known as slow after some ten requests', t => {
  let facts = learn(nothingLearned, {decodeTps: 100});
  for (let request = 0; request < 12; request += 1) facts = learn(facts, {decodeTps: 10});
  t.true((facts.decodeTps ?? 0) < 17);
});

test('a slow load is remembered at once, a usual length moves by a fifth', t => {
  const facts = learn(learn(nothingLearned, {loadMs: 1000, outputTokens: 100}), {loadMs: 9000, outputTokens: 200});
  t.deepEqual([facts.loadMs, facts.outputTokens], [9000, 120]);
});

test('nonsense is not learned', t => {
  for (const value of [0, -1, Number.NaN, Infinity])
    t.deepEqual(learn(nothingLearned, {holdMs: value}), nothingLearned);
});

test('others are told of what is new or has changed by more than noise', t => {
  const told = {...nothingLearned, decodeTps: 100};
  t.true(isNews(undefined, told));
  t.false(isNews(told, {...told, decodeTps: 110}));
  t.true(isNews(told, {...told, decodeTps: 120}));
  t.true(isNews(told, {...told, loadMs: 5}));
  t.false(isNews(undefined, nothingLearned));
});
