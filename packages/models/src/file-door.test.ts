import test from 'ava';
import {Fault} from '@hearsay/core';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {fileDoor} from './file-door.ts';

const never = async (): Promise<string> => new Promise(() => {});

test('two calls pass a door at a time, and the next when one is over', async t => {
  const door = fileDoor(manualClock(), new AbortController().signal);
  const calls = [0, 1, 2].map(() => Promise.withResolvers<number>());
  const started: number[] = [];
  const passing = calls.map(async ({promise}, index) =>
    door.pass(async () => {
      started.push(index);
      return promise;
    }),
  );
  await Promise.resolve();
  t.deepEqual(started, [0, 1]);
  calls[1]?.resolve(1);
  await passing[1];
  calls[2]?.resolve(2);
  t.is(await passing[2], 2);
  t.deepEqual(started, [0, 1, 2]);
});

test('a call that hangs shuts the door for all that wait and come later, until it is answered', async t => {
  const clock = manualClock();
  const door = fileDoor(clock, new AbortController().signal);
  const late = Promise.withResolvers<string>();
  const discarded: string[] = [];
  const wait = async (): Promise<string> => late.promise;
  const ends = Promise.allSettled([
    door.pass(wait, text => discarded.push(text)),
    door.pass(wait),
    door.pass(never), // waits outside
  ]);
  await clock.advance(3000);
  t.true((await ends).every(end => end.status === 'rejected' && end.reason instanceof Fault));
  await t.throwsAsync(door.pass(never), {instanceOf: Fault, message: /does not answer/u});
  late.resolve('too late');
  await clock.advance(1);
  t.deepEqual(discarded, ['too late']);
  t.is(await door.pass(async () => 'in time'), 'in time');
});

test('whoever waits at a door is let go when everything closes', async t => {
  const closing = new AbortController();
  const door = fileDoor(manualClock(), closing.signal);
  const ends = Promise.allSettled([0, 1, 2].map(async () => door.pass(never)));
  await Promise.resolve();
  const reason = new Error('closing');
  closing.abort(reason);
  t.deepEqual(
    (await ends).map(end => end.status === 'rejected' && end.reason),
    [reason, reason, reason],
  );
});

test('one timer serves all that pass, and still ends what entered late three seconds later', async t => {
  const manual = manualClock();
  let timers = 0;
  const after: typeof manual.after = (ms, run) => {
    timers += 1;
    return manual.after(ms, run);
  };
  const door = fileDoor({...manual, after}, new AbortController().signal);
  for (let count = 0; count < 100; count += 1) await door.pass(async () => count);
  t.is(timers, 1);
  await manual.advance(1000);
  const end = door.pass(never).catch((error: unknown) => error);
  await manual.advance(2900);
  t.is(await Promise.race([end, Promise.resolve('inside')]), 'inside');
  await manual.advance(100);
  t.true((await end) instanceof Fault);
});
