import test from 'ava';
import {Fault} from './fault.ts';
import {choosePolicy, formatPolicy, parsePolicy} from './policy.ts';
import type {PolicySource, PolicyWish} from './policy.ts';

test('S91: what is written is what is read, in every form', t => {
  for (const text of ['auto', 'prefer=a,b', 'pin=a', 'auto;exclude=c,d', 'pin=a;exclude=b;local-preferred']) {
    t.is(formatPolicy(parsePolicy(text)), text);
  }
  t.is(formatPolicy(parsePolicy(' exclude = a ; local-required '.replaceAll(' = ', '='))), 'auto;exclude=a');
});

test('law 7: whoever says nothing about it stays local', t => {
  for (const text of ['auto', 'prefer=a', 'pin=a;exclude=b']) t.true(parsePolicy(text).localRequired);
});

test('a policy that cannot be read says what one looks like', t => {
  for (const text of ['', 'fast', 'pin', 'pin=', 'pin=a;prefer=b', 'auto=1', 'prefer=a\u0000', 'exclude=', 'local']) {
    t.throws(() => parsePolicy(text), {instanceOf: Fault, message: /a policy is auto/u}, JSON.stringify(text));
  }
});

const order: readonly PolicySource[] = ['operator', 'header', 'provider', 'name', 'workload', 'key', 'config'];

test('S94, S95: the strongest wish holds: owner, header, provider, name, workload, key, config', t => {
  const wishes = order.map((from): PolicyWish => ({from, policy: parsePolicy(`pin=${from}`)}));
  for (const [index, from] of order.entries()) {
    const present = wishes.slice(index).toReversed();
    t.is(choosePolicy([undefined, ...present]).from, from);
    t.is(formatPolicy(choosePolicy(present).policy), `pin=${from}`);
  }
  t.deepEqual(choosePolicy([undefined]).from, 'default');
});

test('nodes to spare add up, whoever wishes it', t => {
  const {policy, from} = choosePolicy([
    {from: 'header', policy: parsePolicy('prefer=a;exclude=x')},
    {from: 'workload', policy: parsePolicy('pin=b;exclude=y,x')},
  ]);
  t.is(from, 'header');
  t.is(formatPolicy(policy), 'prefer=a;exclude=x,y');
});
