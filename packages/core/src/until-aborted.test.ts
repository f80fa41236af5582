import test from 'ava';
import {Fault} from './fault.ts';
import {untilAborted} from './until-aborted.ts';

test('a promise that settles in time is as without the signal', async t => {
  const {signal} = new AbortController();
  t.is(await untilAborted(Promise.resolve(7), signal), 7);
  await t.throwsAsync(untilAborted(Promise.reject(new Error('broken')), signal), {message: 'broken'});
});

test('the signal ends the wait with its own reason, before or during it, and what comes late is handed over', async t => {
  const late: number[] = [];
  for (const isEarly of [true, false]) {
    const controller = new AbortController();
    const work = Promise.withResolvers<number>();
    if (isEarly) controller.abort(new Fault('CANCELLED', 'gone'));
    const wait = untilAborted(work.promise, controller.signal, value => void late.push(value));
    if (!isEarly) controller.abort(new Fault('CANCELLED', 'gone'));
    await t.throwsAsync(wait, {message: 'gone'});
    work.resolve(1);
    await work.promise;
  }
  t.deepEqual(late, [1, 1]);
});

test('a reason that is no error becomes one, and a late failure is nobody’s', async t => {
  const controller = new AbortController();
  const work = Promise.withResolvers<number>();
  const wait = untilAborted(work.promise, controller.signal);
  controller.abort('enough');
  await t.throwsAsync(wait, {code: 'CANCELLED'});
  work.reject(new Error('late'));
  await t.notThrowsAsync(new Promise(resolve => void setTimeout(resolve, 1)));
});
