import test from 'ava';
import {Fault} from './fault.ts';
import {changeOperator, formatOperator, idleOperator, parseOperator, rulesFor} from './operator.ts';
import {formatPolicy, parsePolicy} from './policy.ts';

const pinned = {subject: 'Qwen', policy: parsePolicy('pin=spark;exclude=mini')};

test('S95: what the owner has said comes back from its file as it was', t => {
  const said = changeOperator(changeOperator(idleOperator, {kind: 'pause'}), {kind: 'set rule', rule: pinned});
  t.deepEqual(parseOperator(formatOperator(said)), said);
  t.like(said, {draining: false, paused: true});
});

test('drain and pause are two things, and each is undone by its own word', t => {
  const both = changeOperator(changeOperator(idleOperator, {kind: 'pause'}), {kind: 'drain'});
  t.like(changeOperator(both, {kind: 'undrain'}), {draining: false, paused: true});
  t.like(changeOperator(both, {kind: 'resume'}), {draining: true, paused: false});
});

test('a second rule for a subject replaces the first, and case does not matter', t => {
  const first = changeOperator(idleOperator, {kind: 'set rule', rule: pinned});
  const second = changeOperator(first, {kind: 'set rule', rule: {subject: 'QWEN', policy: parsePolicy('auto')}});
  t.is(second.rules.length, 1);
  t.is(formatPolicy(rulesFor(second, ['qwen'], undefined)[0]?.policy ?? pinned.policy), 'auto');
  t.deepEqual(changeOperator(second, {kind: 'remove rule', subject: 'qwen'}).rules, []);
  t.throws(() => changeOperator(idleOperator, {kind: 'remove rule', subject: 'qwen'}), {instanceOf: Fault});
});

test('a rule for a key holds for its requests, whatever they ask for', t => {
  const rule = {subject: 'key:notes', policy: parsePolicy('exclude=mini')};
  const state = changeOperator(idleOperator, {kind: 'set rule', rule});
  t.is(rulesFor(state, ['any'], 'Notes').length, 1);
  t.is(rulesFor(state, ['notes'], undefined).length, 0);
});

test('a file that cannot be read is an error and not an owner who has said nothing', t => {
  for (const text of ['', '{}', '{"version":2}', '{"version":1,"draining":true,"paused":false,"rules":[{}]}']) {
    t.throws(() => parseOperator(text), {instanceOf: Fault, message: /cannot be read/u});
  }
});
