import test from 'ava';
import {node} from '../../../test/support/builders.ts';
import {depsFor, run, text} from '../../../test/support/dispatch-trial.ts';
import {busy, scriptedLease, scriptedWorker} from '../../../test/support/scripted-worker.ts';

test('a request that may leave is given back rather than forced to wait longer than its limit', async t => {
  const worker = scriptedWorker(node('A'), busy(31_000));
  await t.throwsAsync(run({...depsFor(worker), waitMsMax: 30_000}), {
    code: 'OVERLOADED',
    message: 'the shortest wait for a slot is 31 s',
  });
  t.deepEqual(
    worker.offers.map(({force}) => force),
    [false],
  );
});

test('within its limit it waits, and when it comes back its attempts go on counting', async t => {
  const worker = scriptedWorker(node('A'), busy(29_000), scriptedLease([' 1']));
  const started = await run({...depsFor(worker), waitMsMax: 30_000, attemptsBefore: 3});
  t.is(await text(started), ' 1');
  t.deepEqual(
    worker.offers.map(({attempt, force}) => [attempt, force]),
    [
      [4, false],
      [5, true],
    ],
  );
});
