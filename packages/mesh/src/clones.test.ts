import test from 'ava';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {Clones} from './clones.ts';

test('R57: a twin with this key is named once it was seen for some seconds, and no longer when it is gone', async t => {
  const clock = manualClock();
  const told: string[] = [];
  const clones = new Clones(
    clock,
    host => host === '10.0.0.1',
    host => void told.push(host),
  );
  for (let second = 0; second < 4; second += 1) {
    clones.sighted('10.0.0.9');
    clones.sighted('10.0.0.1');
    clones.sighted('45.0.0.1');
    await clock.advance(1000);
  }
  t.deepEqual(told, ['10.0.0.9']);
  t.regex(clones.warnings().join(), /10\.0\.0\.9 uses the same key.*delete node\.key/u);
  await clock.advance(61_000);
  t.deepEqual(clones.warnings(), []);
});

test('R57: a copy of the data folder on this very machine is told by its port', async t => {
  const clock = manualClock();
  const clones = new Clones(
    clock,
    (host, port) => host === '10.0.0.1' && (port === undefined || port === 4328),
    () => {},
  );
  const looks = async (port?: number): Promise<string> => {
    for (let second = 0; second < 5; second += 1) {
      clones.sighted('10.0.0.1', port);
      await clock.advance(1000);
    }
    return clones.warnings().join();
  };
  t.is(await looks(), '');
  t.is(await looks(4328), '');
  t.regex(await looks(4329), /10\.0\.0\.1 uses the same key/u);
});

test('an announcement puts no text of its own into what people read about a twin', async t => {
  const clock = manualClock();
  const clones = new Clones(
    clock,
    () => false,
    () => {},
  );
  for (let second = 0; second < 5; second += 1) {
    clones.sighted('fe80::1%evil\u001B[2J');
    await clock.advance(1000);
  }
  t.regex(clones.warnings().join(), /fe80::1 uses the same key/u);
  t.notRegex(clones.warnings().join(), /evil/u);
});
