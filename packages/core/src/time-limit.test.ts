import {getEventListeners} from 'node:events';
import test from 'ava';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {timeLimit} from './time-limit.ts';

test('the signal aborts when the time is over, and says what took so long', async t => {
  const clock = manualClock();
  using limit = timeLimit(clock, 100, 'a dial');
  await clock.advance(99);
  t.false(limit.signal.aborted);
  await clock.advance(1);
  t.like(limit.signal.reason, {code: 'TIMED_OUT', message: 'a dial took longer than 100 ms'});
});

test('the signal aborts with the outer one, also when that has aborted before', t => {
  const outer = new AbortController();
  using before = timeLimit(manualClock(), 100, 'a dial', outer.signal);
  outer.abort('enough');
  t.is(before.signal.reason, 'enough');
  using after = timeLimit(manualClock(), 100, 'a dial', outer.signal);
  t.is(after.signal.reason, 'enough');
});

test('nothing of a wait that is over stays with a signal that lives as long as the daemon', t => {
  const daemon = new AbortController();
  for (let wait = 0; wait < 100; wait += 1) {
    using limit = timeLimit(manualClock(), 100, 'a dial', daemon.signal);
    limit.signal.addEventListener('abort', () => {}); // as libp2p does, which does not always take it back
  }
  t.is(getEventListeners(daemon.signal, 'abort').length, 0);
  const dependants = Object.getOwnPropertySymbols(daemon.signal).filter(symbol => /dependant/iu.test(String(symbol)));
  t.deepEqual(dependants, []);
});
