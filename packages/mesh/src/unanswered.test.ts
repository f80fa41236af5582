import {multiaddr} from '@multiformats/multiaddr';
import test from 'ava';
import {node} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {Unanswered} from './unanswered.ts';

test('a node that announces itself and fails twice is told of, until it answers or is silent', async t => {
  const clock = manualClock();
  const unanswered = new Unanswered(clock);
  const address = multiaddr('/ip4/10.0.0.5/tcp/4328');
  unanswered.failed(node('A'), [address]);
  t.deepEqual(unanswered.warnings(), []);
  unanswered.failed(node('A'), [address]);
  t.regex(unanswered.warnings().join(), /10\.0\.0\.5:4328/u);
  unanswered.answered(node('A'));
  t.deepEqual(unanswered.warnings(), []);
  for (let time = 0; time < 2; time += 1) unanswered.failed(node('B'), [address]);
  t.is(unanswered.warnings().length, 1);
  await clock.advance(100_000);
  t.deepEqual(unanswered.warnings(), []);
});

test('an announcement puts no text of its own before people', t => {
  const unanswered = new Unanswered(manualClock());
  for (const text of ['/dns4/evil\u001b[2J/tcp/1', '/ip6zone/evil\u001b[2J/ip6/fe80::1/tcp/1']) {
    for (let time = 0; time < 3; time += 1) unanswered.failed(node('A'), [multiaddr(text)]);
  }
  t.notRegex(unanswered.warnings().join(), /evil/u);
});
