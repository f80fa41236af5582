import test from 'ava';
import {toNodeId} from '@hearsay/core';
import {node} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {Admissions} from './admission.ts';

const peer = node('p');

test('nobody is admitted before it is said, and every change is told', t => {
  const changes: string[] = [];
  const admissions = new Admissions(manualClock(), changed => void changes.push(changed));
  t.deepEqual(admissions.state(peer), {kind: 'unknown'});
  admissions.admit(peer);
  admissions.admit(peer);
  t.true(admissions.isAdmitted(peer));
  admissions.forget(peer);
  t.deepEqual(admissions.state(peer), {kind: 'unknown'});
  t.deepEqual(changes, [peer, peer]);
});

test('a refusal is remembered with its reason, outlives the connection, and ends after a minute', async t => {
  const clock = manualClock();
  const admissions = new Admissions(clock, () => undefined);
  admissions.refuse(peer, 'another mesh');
  admissions.forget(peer);
  await clock.advance(59_000);
  t.deepEqual(admissions.state(peer), {kind: 'refused', reason: 'another mesh'});
  await clock.advance(2000);
  t.deepEqual(admissions.state(peer), {kind: 'unknown'});
});

test('a new connection of a refused node is judged anew', t => {
  const admissions = new Admissions(manualClock(), () => undefined);
  admissions.refuse(peer, 'another mesh');
  admissions.begin(peer);
  t.deepEqual(admissions.state(peer), {kind: 'unknown'});
  admissions.admit(peer);
  t.deepEqual(admissions.refused(), []);
});

test('however many strangers come, only the newest refusals are kept', t => {
  const admissions = new Admissions(manualClock(), () => undefined);
  const letters = '123456789ABCDEFGHJKLMNPQRSTUVWXYZ'.split('');
  const strangers = letters.flatMap(a => letters.map(b => toNodeId(`12D3Koo${(a + b).repeat(22)}`)));
  for (const stranger of strangers) admissions.refuse(stranger, 'no');
  t.deepEqual(admissions.refused(), strangers.slice(-256));
});

test('whoever waits for the decision learns it, also when the peer goes away undecided', async t => {
  const admissions = new Admissions(manualClock(), () => undefined);
  const yes = admissions.decided(peer);
  admissions.admit(peer);
  t.true(await yes);
  admissions.forget(peer);
  const gone = admissions.decided(peer);
  admissions.forget(peer);
  t.false(await gone);
  const no = admissions.decided(peer);
  admissions.refuse(peer, 'another mesh');
  t.false(await no);
});
