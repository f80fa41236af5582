import {Fault} from '@hearsay/core';
import test from 'ava';
import {scriptedLease} from '../../../test/support/scripted-worker.ts';
import {LeasedBody} from './leased-body.ts';

test('law 10: bytes that come although the client has gone begin no answer, whose end nobody would be told', async t => {
  const gone = new AbortController();
  const lease = scriptedLease(['late']);
  const body = new LeasedBody(lease, 'A', gone.signal);
  const response = await lease.run(new Uint8Array(), gone.signal);
  gone.abort();
  await t.throwsAsync(body.begin(response), {instanceOf: Fault, code: 'CANCELLED'});
  t.is(lease.disposals(), 1);
});
