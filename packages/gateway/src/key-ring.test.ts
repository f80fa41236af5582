import {Fault} from '@hearsay/core';
import type {TextStore} from '@hearsay/core';
import test from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {isSecret, startKeyRing} from './key-ring.ts';

function memoryStore(text?: string): TextStore & {readonly text: () => string} {
  return {
    text: () => text ?? '',
    read: async () => text,
    write: async next => {
      text = next;
    },
  };
}

const environment = {...realEnvironment(), clock: manualClock()};

test('a secret is known until it is revoked, also after a restart, and only its hash is kept', async t => {
  const store = memoryStore();
  const ring = await startKeyRing(store, environment);
  t.true(ring.isEmpty());
  const {secret} = await ring.create({name: 'notes', models: ['qwen*'], policy: 'prefer=a'});
  t.true(isSecret(secret));
  t.regex(secret, /^hs-[\w-]{43}$/u);
  t.false(store.text().includes(secret.slice(3)));

  const again = await startKeyRing(store, environment);
  t.like(again.identify(secret), {caller: {name: 'notes', rights: {models: ['qwen*']}}, admin: false});
  t.is(again.identify(`${secret}x`), undefined);
  t.is(again.identify(again.list()[0]?.hash ?? ''), undefined, 'the hash opens nothing');
  await again.revoke('Notes');
  t.is(again.identify(secret), undefined);
  t.is((await startKeyRing(store, environment)).identify(secret), undefined);
});

test('what a key may not be is refused with the reason', async t => {
  const ring = await startKeyRing(memoryStore(), environment);
  await ring.create({name: 'notes'});
  const wishes: readonly (readonly [unknown, RegExp])[] = [
    [{}, /name/u],
    [{name: 'NOTES'}, /already/u],
    [{name: 'a', perMinute: 0}, /perMinute/u],
    [{name: 'a', policies: ['fast']}, /policies/u],
    [{name: 'a', policy: 'fast'}, /a policy is auto/u],
    [{name: 'a,b'}, /without comma/u],
  ];
  for (const [wish, message] of wishes) await t.throwsAsync(ring.create(wish), {instanceOf: Fault, message});
  await t.throwsAsync(ring.revoke('nobody'), {message: /no key nobody/u});
});

test('a rate lets so many through and then says when to come back', async t => {
  const clock = manualClock();
  const ring = await startKeyRing(memoryStore(), {...environment, clock});
  await ring.create({name: 'notes', perMinute: 2});
  ring.count('notes');
  ring.count('notes');
  const error = t.throws(() => ring.count('notes'), {instanceOf: Fault, message: /2 requests a minute/u});
  t.deepEqual(error instanceof Fault ? [error.code, error.details['retryAfterMs']] : [], ['OVERLOADED', 30_000]);
  await clock.advance(30_000);
  ring.count('notes');
  t.throws(() => ring.count('notes'));
});

test('a file of keys that cannot be read stops the start instead of letting everybody in', async t => {
  await t.throwsAsync(startKeyRing(memoryStore('{"version":1,"keys":[{}]}'), environment), {instanceOf: Fault});
});
