import test from 'ava';
import {describeError, hasCode} from './fault.ts';

test('R15: whatever was thrown has a text', t => {
  for (const thrown of [new Error(''), '', undefined, null, {}, new AggregateError([])])
    t.not(describeError(thrown), '');
  t.is(describeError(new RangeError('')), 'RangeError');
});

test('R15: what fetch and the dialling of several addresses only wrap is told instead', t => {
  const refused = new Error('connect ECONNREFUSED 10.0.0.5:443');
  t.is(describeError(new TypeError('fetch failed', {cause: refused})), refused.message);
  t.is(describeError(new TypeError('fetch failed', {cause: new AggregateError([refused, refused])})), refused.message);
  t.is(describeError(new TypeError('fetch failed')), 'fetch failed');
});

test('an error is told by any of the codes that are asked for, and by nothing else', t => {
  const missing = Object.assign(new Error('gone'), {code: 'ENOENT'});
  t.true(hasCode(missing, 'ENOENT'));
  t.true(hasCode(missing, 'EACCES', 'ENOENT'));
  t.false(hasCode(missing, 'EACCES'));
  t.false(hasCode(missing));
  for (const other of [new Error('ENOENT'), Object.assign(new Error('x'), {code: 2}), {code: 'ENOENT'}, undefined]) {
    t.false(hasCode(other, 'ENOENT'));
  }
});
