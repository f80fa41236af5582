import type {TextStore} from '@hearsay/core';
import {Fault} from '@hearsay/core';
import test from 'ava';
import {keepOperator} from './keep-operator.ts';

function memoryStore(text?: string): TextStore & {readonly text: () => string | undefined; fails: boolean} {
  return {
    fails: false,
    text: () => text,
    read: async () => text,
    async write(next) {
      if (this.fails) throw new Error('the disk is full');
      text = next;
    },
  };
}

test('S95: a change holds when it is on disk, and a new start begins with it', async t => {
  const store = memoryStore();
  let changes = 0;
  const keeper = await keepOperator(store, () => (changes += 1));
  await Promise.all([keeper.change({kind: 'drain'}), keeper.change({kind: 'pause'})]);
  t.is(changes, 2);
  t.deepEqual((await keepOperator(store, () => undefined)).flags(), {draining: true, paused: true});
});

test('a change that could not be written does not hold, and the next one can', async t => {
  const store = memoryStore();
  const keeper = await keepOperator(store, () => undefined);
  store.fails = true;
  await t.throwsAsync(keeper.change({kind: 'drain'}), {message: /disk is full/u});
  t.deepEqual(keeper.flags(), {draining: false, paused: false});
  store.fails = false;
  await keeper.change({kind: 'pause'});
  t.deepEqual(keeper.flags(), {draining: false, paused: true});
});

test('a file that cannot be read stops the start', async t => {
  await t.throwsAsync(
    keepOperator(memoryStore('{'), () => undefined),
    {instanceOf: Fault},
  );
});
