import test from 'ava';
import {automatic, Fault, newRequestId, parsePolicy} from '@hearsay/core';
import type {ClientRequest, FaultCode, HostedService, Policy, RequestEvent, Worker} from '@hearsay/core';
import {digest, node} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {scriptedLease, scriptedWorker} from '../../../test/support/scripted-worker.ts';
import type {Started} from './dispatch.ts';
import {startWithFallback} from './hosted-fallback.ts';

const times = {clock: manualClock(), patience: {firstByteMsMin: 10_000, firstByteMsMax: 60_000}};
const never = new AbortController().signal;

function serviceOf(worker: Worker, waitMsMax = 30_000): HostedService {
  return {name: 'acme', worker, waitMsMax, models: [{pattern: 'm', digest: digest('a')}]};
}

function request(policy: Policy): ClientRequest {
  return {
    id: newRequestId({next: () => 0, bytes: length => new Uint8Array(length)}),
    model: 'm',
    endpoint: '/v1/chat/completions',
    needs: ['chat'],
    policy,
    body: new Uint8Array(3),
    traceparent: undefined,
  };
}

interface Trial {
  readonly services: readonly HostedService[];
  readonly policy?: Policy;
  readonly local?: (waitMsMax: number | undefined) => Promise<Started>;
}

async function start({services, policy = parsePolicy('local-preferred'), local = none('NO_CANDIDATE')}: Trial) {
  const events: RequestEvent[] = [];
  const note = (event: RequestEvent): void => void events.push(event);
  const deps = {services, names: ['m'], note, attempts: () => 2, local, ...times};
  const started = startWithFallback(request(policy), deps, never);
  return {started: await started.catch((error: unknown) => error), events};
}

const none =
  (code: FaultCode, details = {}) =>
  async (): Promise<Started> => {
    throw new Fault(code, 'the mesh has nobody', {details});
  };

test('S85: a request that may leave runs at the service, whose name is told, and the journal has why', async t => {
  const lease = scriptedLease([' 1']);
  const worker = scriptedWorker(node('H'), lease);
  const {started, events} = await start({services: [serviceOf(worker)]});
  t.like(started, {digest: digest('a'), attempt: 3, node: {name: 'acme (hosted)'}});
  t.deepEqual(
    worker.offers.map(({attempt, hop, digests}) => [attempt, hop, digests]),
    [[3, 0, [digest('a')]]],
  );
  t.deepEqual(events[0], {kind: 'leaving', reason: 'the mesh has nobody', services: ['acme (hosted)']});
  t.deepEqual(
    events.slice(1).map(({kind}) => kind),
    ['offered', 'accepted', 'started'],
  );
});

test('S84: a request that is local-required ends with what the mesh said, and no service is asked', async t => {
  for (const policy of [automatic, parsePolicy('pin=B;local-preferred')]) {
    const worker = scriptedWorker(node('H'), scriptedLease([' 1']));
    const {started, events} = await start({services: [serviceOf(worker)], policy});
    t.like(started, {code: 'NO_CANDIDATE', message: 'the mesh has nobody'});
    t.deepEqual([worker.offers.length, events], [0, []]);
  }
});

test('S86: local-preferred without a service ends as local-required does', async t => {
  const [preferred, required] = await Promise.all(
    ['local-preferred', 'local-required'].map(async policy => start({services: [], policy: parsePolicy(policy)})),
  );
  t.like(preferred?.started, {code: 'NO_CANDIDATE', message: 'the mesh has nobody'});
  t.like(required?.started, {code: 'NO_CANDIDATE', message: 'the mesh has nobody'});
  t.deepEqual([preferred?.events, required?.events], [[], []]);
});

test('a mistake of the client and a right that is missing stay what they are', async t => {
  for (const code of ['BAD_REQUEST', 'FORBIDDEN', 'INTERRUPTED'] as const) {
    const worker = scriptedWorker(node('H'), scriptedLease([' 1']));
    const {started} = await start({services: [serviceOf(worker)], local: none(code)});
    t.like(started, {code});
    t.is(worker.offers.length, 0);
  }
});

test('the mesh is given the shortest limit for its wait, and none when the request may not leave', async t => {
  const limits: (number | undefined)[] = [];
  const local = async (waitMsMax: number | undefined): Promise<Started> => {
    limits.push(waitMsMax);
    throw new Fault('BAD_REQUEST', 'enough');
  };
  const worker = scriptedWorker(node('H'), scriptedLease([' 1']));
  await start({services: [serviceOf(worker, 9000), serviceOf(worker, 4000)], local});
  await start({services: [serviceOf(worker)], policy: automatic, local});
  t.deepEqual(limits, [4000, undefined]);
});

test('when the service refuses, a request that could wait waits in the mesh after all', async t => {
  const worker = scriptedWorker(node('H'), {kind: 'refused', code: 'policy', message: 'the month is spent'});
  const limits: (number | undefined)[] = [];
  const local = async (waitMsMax: number | undefined): Promise<Started> => {
    limits.push(waitMsMax);
    return none('OVERLOADED', {couldWait: waitMsMax !== undefined})();
  };
  const {started} = await start({services: [serviceOf(worker)], local});
  t.deepEqual(limits, [30_000, undefined]);
  t.like(started, {code: 'OVERLOADED', message: 'the mesh has nobody'});
});

test('R22: when nobody can, the client hears the mesh first and then the service', async t => {
  const worker = scriptedWorker(node('H'), {kind: 'refused', code: 'policy', message: 'the month is spent'});
  const {started} = await start({
    services: [serviceOf(worker)],
    local: none('NO_CANDIDATE', {attempts: ['B: gone'], retryAfterMs: 700}),
  });
  t.like(started, {
    code: 'NO_CANDIDATE',
    message: 'the mesh has nobody; the month is spent',
    details: {attempts: ['B: gone'], retryAfterMs: 700, hosted: 'the month is spent'},
  });
});

test('a service that breaks before output is left for the next', async t => {
  const broken = scriptedWorker(node('H'), scriptedLease([new Error('gone')]));
  const good = scriptedWorker(node('J'), scriptedLease([' 1']));
  const {started} = await start({services: [serviceOf(broken), {...serviceOf(good), name: 'bolt'}]});
  t.like(started, {attempt: 4, node: {name: 'bolt (hosted)'}});
});
