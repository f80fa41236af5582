import test from 'ava';
import {Strangers, strangersMax, strangersPerHostMax} from './strangers.ts';

test('one address can hold only so many connections of strangers, and gets them back as they end', t => {
  const strangers = new Strangers();
  const ports = Array.from({length: strangersPerHostMax}, (_, index) => `10.0.0.1:${index}`);
  t.true(ports.every(key => strangers.letIn(key, '10.0.0.1')));
  t.false(strangers.letIn('10.0.0.1:9999', '10.0.0.1'));
  t.true(strangers.letIn('10.0.0.2:1', '10.0.0.2'));
  strangers.done(ports[0] ?? '');
  t.true(strangers.letIn('10.0.0.1:9999', '10.0.0.1'));
});

test('many addresses together cannot hold more than the whole either', t => {
  const strangers = new Strangers();
  const admitted = Array.from({length: 2 * strangersMax}, (_, index) => strangers.letIn(`k${index}`, `h${index}`));
  t.is(admitted.filter(Boolean).length, strangersMax);
});

test('all addresses of one public IPv6 network count as one, and those of a home do not', t => {
  const strangers = new Strangers();
  const admitted = (prefix: string): number =>
    Array.from({length: 100}, (_, index) => strangers.letIn(`${prefix}${index}`, `${prefix}${index}`)).filter(Boolean)
      .length;
  t.is(admitted('2001:db8:1:2::'), strangersPerHostMax);
  t.is(admitted('fd00:1:2:3::'), 100);
});
