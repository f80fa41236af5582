import test from 'ava';
import type {Clock} from '@hearsay/core';
import {queuedMax, Slots} from './slots.ts';

/** A clock that stands still except when told. */
class HandClock implements Clock {
  nowMs = 0;
  wallMs = (): number => this.nowMs;
  monotonicMs = (): number => this.nowMs;
  sleep = async (): Promise<void> => {};
  after = (): Disposable => ({[Symbol.dispose]: () => {}});
}

test('a slot is taken while one is free and nobody waits', t => {
  const slots = new Slots(1, new HandClock());
  const held = slots.take();
  t.truthy(held);
  t.is(slots.take(), undefined);
  const waiting = slots.enqueue();
  t.true(held !== undefined && slots.release(held));
  t.is(slots.take(), undefined, 'others came first');
  t.is(slots.serve(), 1);
  t.is(slots.held, 1);
  t.true(waiting !== undefined && slots.release(waiting));
});

test('the line is served in the order of arrival', async t => {
  const slots = new Slots(1, new HandClock());
  const order: number[] = [];
  const line = [1, 2, 3].map(number => {
    const slot = slots.enqueue();
    void slot?.granted.then(() => order.push(number));
    return slot;
  });
  for (const slot of line) {
    slots.serve();
    await slot?.granted;
    if (slot !== undefined) slots.release(slot);
  }
  t.deepEqual(order, [1, 2, 3]);
});

test('who leaves the line is not served', t => {
  const slots = new Slots(1, new HandClock());
  const slot = slots.enqueue();
  t.false(slot !== undefined && slots.release(slot), 'it was not held');
  t.is(slots.serve(), 0);
  t.is(slots.queued, 0);
});

test('the line is bounded', t => {
  const slots = new Slots(1, new HandClock());
  for (let count = 0; count < queuedMax; count += 1) t.truthy(slots.enqueue());
  t.is(slots.enqueue(), undefined);
});

test('the estimated wait follows how long slots are held', t => {
  const clock = new HandClock();
  const slots = new Slots(1, clock);
  t.is(slots.waitMs(), 0);
  for (let count = 0; count < 30; count += 1) {
    const slot = slots.take();
    clock.nowMs += 400;
    if (slot !== undefined) slots.release(slot);
  }
  slots.take();
  const one = slots.waitMs();
  t.true(one > 350 && one < 450, `${one} ms`);
  slots.enqueue();
  t.is(slots.waitMs(), 2 * one);
});

test('what needs no slot runs beside those that do, and passes those that wait', t => {
  const slots = new Slots(1, new HandClock());
  t.truthy(slots.take());
  t.truthy(slots.enqueue());
  const beside = slots.take(true);
  t.is(slots.held, 1);
  t.is(slots.inUse, 2);
  t.true(beside !== undefined && slots.release(beside));
  t.is(slots.inUse, 1);
  t.is(slots.queued, 1);
});

test('no more than sixteen requests run beside the slots; the next one needs a slot', t => {
  const slots = new Slots(1, new HandClock());
  const taken = Array.from({length: 18}, () => slots.take(true));
  t.is(taken.filter(slot => slot !== undefined).length, 17);
  t.is(slots.held, 1);
});
