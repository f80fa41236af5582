import {execFileSync} from 'node:child_process';
import test from 'ava';
import {tmpdir} from 'node:os';
import {openFilesMax, reportedFilesMax, systemClock, systemRandom} from './system.ts';

test('a sleep that is aborted rejects with the reason of the signal and at once', async t => {
  const reason = new Error('enough');
  const stop = new AbortController();
  const sleeping = systemClock.sleep(60_000, stop.signal);
  stop.abort(reason);
  t.is(await t.throwsAsync(sleeping), reason);
});

test('a sleep with a signal that is aborted already rejects with its reason', async t => {
  const reason = new Error('enough');
  t.is(await t.throwsAsync(systemClock.sleep(0, AbortSignal.abort(reason))), reason);
});

test('a timer runs once after its time', async t => {
  const startedMs = systemClock.monotonicMs();
  let times = 0;
  const first = await new Promise<string>(resolve => {
    systemClock.after(20, () => {
      times += 1;
      resolve('the timer');
    });
    // It also keeps the process alive, which the timer must not.
    void systemClock.sleep(1000).then(() => resolve('a second'));
  });
  t.is(first, 'the timer');
  const elapsedMs = systemClock.monotonicMs() - startedMs;
  t.true(elapsedMs >= 19, `${elapsedMs} ms`);
  await systemClock.sleep(50);
  t.is(times, 1);
});

test('a disposed timer never runs', async t => {
  systemClock.after(5, () => t.fail())[Symbol.dispose]();
  await systemClock.sleep(30);
  t.pass();
});

test('a timer for ever, or for longer than Node can count, does not run at once', async t => {
  using timers = new DisposableStack();
  timers.use(systemClock.after(Infinity, () => t.fail()));
  timers.use(systemClock.after(365 * 24 * 3600 * 1000, () => t.fail()));
  await systemClock.sleep(30);
  t.pass();
});

test('chance is in [0, 1) and bytes have the length asked for', t => {
  for (let count = 0; count < 1000; count += 1) {
    const value = systemRandom.next();
    t.true(value >= 0 && value < 1);
  }
  t.is(systemRandom.bytes(32).length, 32);
  t.notDeepEqual(systemRandom.bytes(32), systemRandom.bytes(32));
});

test('how much may be open at once is what the shell says', t => {
  if (process.platform === 'win32') {
    t.is(openFilesMax(), undefined);
    return;
  }
  const told = execFileSync('sh', ['-c', 'ulimit -n'], {encoding: 'utf8'}).trim();
  t.is(openFilesMax(), told === 'unlimited' ? undefined : Number(told));
  t.is(reportedFilesMax(), openFilesMax(), 'and what Node says');
  for (const unreadable of [tmpdir(), '/proc/none']) t.is(openFilesMax(unreadable), reportedFilesMax(), unreadable);
});
