import {Fault, toEntry, weigh} from '@hearsay/core';
import type {RequestEvent} from '@hearsay/core';
import test from 'ava';
import {asked, candidate, digest, node} from '../../../test/support/builders.ts';
import {depsFor, run, text} from '../../../test/support/dispatch-trial.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {busy, scriptedLease, scriptedWorker} from '../../../test/support/scripted-worker.ts';

test('the best node runs it, and the lease ends with the answer', async t => {
  const lease = scriptedLease([' 1', ' 2', ' 3']);
  const other = scriptedWorker(node('B'), scriptedLease(['wrong']));
  const started = await run(depsFor(scriptedWorker(node('A'), lease), other));
  t.is(started.attempt, 1);
  t.is(await text(started), ' 1 2 3');
  t.is(lease.disposals(), 1);
  t.is(other.offers.length, 0);
});

test('S37, S103: what enters here starts with hop 0, and every offer has a greater attempt', async t => {
  const first = scriptedWorker(node('A'), busy(100));
  const second = scriptedWorker(node('B'), scriptedLease(['x']));
  const started = await run(depsFor(first, second));
  await text(started);
  t.deepEqual([first.offers[0]?.hop, first.offers[0]?.attempt], [0, 1]);
  t.deepEqual([second.offers[0]?.hop, second.offers[0]?.attempt], [0, 2]);
});

test('S83: a node that fails before its first byte is left for the next, and its slot is given back', async t => {
  const broken = scriptedLease([new Fault('PEER_FAILED', 'gone')]);
  const deps = depsFor(scriptedWorker(node('A'), broken), scriptedWorker(node('B'), scriptedLease(['ok'])));
  const started = await run(deps);
  t.is(await text(started), 'ok');
  t.is(started.attempt, 2);
  t.is(broken.disposals(), 1);
  t.deepEqual(deps.failures, [node('A')]);
});

test('S87, law 3: after the first byte nobody else is asked, and the reader is told that it broke off', async t => {
  const lease = scriptedLease([' 1', new Fault('PEER_FAILED', 'gone')]);
  const other = scriptedWorker(node('B'), scriptedLease([' 1 2 3']));
  const started = await run(depsFor(scriptedWorker(node('A'), lease), other));
  const error = await t.throwsAsync(text(started), {instanceOf: Fault});
  t.like(error, {code: 'INTERRUPTED'});
  t.is(other.offers.length, 0);
  t.is(lease.disposals(), 1);
});

test('S88: half an event may be output already, so that whatever breaks then is never run again', async t => {
  const cut = scriptedLease(['data: {"choi', new Fault('PEER_FAILED', 'gone')]);
  const other = scriptedWorker(node('B'), scriptedLease(['never']));
  const started = await run(depsFor(scriptedWorker(node('A'), cut), other));
  await t.throwsAsync(text(started), {instanceOf: Fault, code: 'INTERRUPTED'});
  t.is(other.offers.length, 0);
});

test('R21: a 200 whose first event is an error counts as a failure before output', async t => {
  const lying = scriptedLease(['data: {"error":{"code":500,"message":"no","type":"server_error"}}\n\n']);
  const started = await run(
    depsFor(scriptedWorker(node('A'), lying), scriptedWorker(node('B'), scriptedLease(['ok']))),
  );
  t.is(await text(started), 'ok');
});

test('R21: an error event that is named and bare counts as a failure before output, as Anthropic has it', async t => {
  const bare = 'event: error\ndata: {"code":500,"message":"no luck","type":"server_error"}\n\n';
  const lying = scriptedWorker(node('A'), scriptedLease([bare]));
  const started = await run(depsFor(lying, scriptedWorker(node('B'), scriptedLease(['fine']))));
  t.is(started.attempt, 2);
  t.is(await text(started), 'fine');
});

test('R13, law 3: comments while an engine reads are no output, so that another node may still answer', async t => {
  const broken = scriptedLease([':\n\n', ': reading\n\n', new Fault('PEER_FAILED', 'gone')]);
  const deps = depsFor(scriptedWorker(node('A'), broken), scriptedWorker(node('B'), scriptedLease([':\n\n', 'fine'])));
  const started = await run(deps);
  t.is(started.attempt, 2);
  t.is(await text(started), 'fine');
  t.is(broken.disposals(), 1);
});

test('a model that no node can use for this is the mistake of the client', async t => {
  const deps = depsFor();
  const ranked = (exclusion: 'artifact' | 'draining') =>
    weigh([candidate('A', {exclusion: 'capability'}), candidate('B', {exclusion})].map(toEntry), asked());
  const error = await t.throwsAsync(run({...deps, rank: () => ranked('artifact')}), {instanceOf: Fault});
  t.is(error.code, 'BAD_REQUEST');
  t.regex(error.message, /m cannot do this: it lacks chat/u);
  const later = await t.throwsAsync(run({...deps, rank: () => ranked('draining')}), {instanceOf: Fault});
  t.is(later.code, 'NO_CANDIDATE');
});

test('an answer without a single byte counts as a failure before output', async t => {
  const deps = depsFor(scriptedWorker(node('A'), scriptedLease([])), scriptedWorker(node('B'), scriptedLease(['ok'])));
  t.is(await text(await run(deps)), 'ok');
});

test('R24, R108: what the client did wrong is passed on as it is and tried nowhere else', async t => {
  const mistake = '{"error":{"code":500,"message":"Failed to parse tools: Missing tool type: {}"}}';
  for (const [status, answer] of [
    [400, '{"error":1}'],
    [404, '{"error":1}'],
    [413, '{"error":1}'],
    [422, '{"error":1}'],
    [500, mistake],
    [500, mistake.replace('{}', `{}; tools = [${'x'.repeat(8000)}]`)],
  ] as const) {
    const other = scriptedWorker(node('B'), scriptedLease(['ok']));
    const refusing = scriptedWorker(node('A'), scriptedLease([answer], {status}));
    const started = await run(depsFor(refusing, other));
    t.is(started.response.status, status);
    t.is(await text(started), answer);
    t.is(other.offers.length, 0);
  }
});

test('C39: an engine that answers 429 or 5xx before output is left for the next', async t => {
  for (const status of [429, 500, 503]) {
    const deps = depsFor(
      scriptedWorker(node('A'), scriptedLease(['{"error":{"message":"no"}}'], {status})),
      scriptedWorker(node('B'), scriptedLease(['ok'])),
    );
    t.is(await text(await run(deps)), 'ok');
  }
});

test('R30: an engine that breaks or refuses before output is told of as that, and its node is not', async t => {
  for (const pieces of [
    scriptedLease(['{"error":{"message":"no"}}'], {status: 503}),
    scriptedLease([new Fault('ENGINE_FAILED', 'gone')]),
  ]) {
    const told: unknown[] = [];
    const deps = depsFor(scriptedWorker(node('A'), pieces), scriptedWorker(node('B'), scriptedLease(['ok'])));
    await text(
      await run({
        ...deps,
        engineFailed: (id, of) => void told.push([id, of]),
        succeeded: (...engine) => void told.push(engine),
      }),
    );
    t.deepEqual(told, [
      [node('A'), digest('a')],
      [node('B'), digest('a')],
    ]);
    t.deepEqual(deps.failures, []);
  }
});

const said = '{"error":{"code":500,"message":"Missing tool type","type":"server_error"}}';

test('R30: an error that the request may have caused says nothing of the engine while none has answered it', async t => {
  for (const lease of [scriptedLease([said], {status: 500}), scriptedLease([`data: ${said}\n\n`])]) {
    const told: unknown[] = [];
    const engineFailed = (...engine: readonly unknown[]): void => void told.push(engine);
    const alone = run({...depsFor(scriptedWorker(node('A'), lease)), engineFailed});
    await t.throwsAsync(alone, {message: /Missing tool type/u});
    const same = scriptedLease([said], {status: 400});
    await run({...depsFor(scriptedWorker(node('A'), lease), scriptedWorker(node('B'), same)), engineFailed});
    t.deepEqual(told, []);
  }
});

test('R30: an error that the request may have caused counts once another engine has answered it', async t => {
  const told: unknown[] = [];
  const clock = manualClock();
  await clock.advance(7);
  const lease = scriptedLease([said], {status: 500});
  const deps = depsFor(
    scriptedWorker(node('A'), {
      ...lease,
      async run(...work) {
        await clock.advance(100);
        return lease.run(...work);
      },
    }),
    scriptedWorker(node('B'), scriptedLease(['ok'])),
  );
  await text(await run({...deps, clock, engineFailed: (...engine) => void told.push(engine)}));
  t.deepEqual(told, [[node('A'), digest('a'), 7]], 'with the moment at which it had begun');
});

test('R22: when all have failed the first cause is kept and the others are named', async t => {
  const deps = depsFor(
    scriptedWorker(node('A'), scriptedLease([new Fault('ENGINE_FAILED', 'cause one')])),
    scriptedWorker(node('B'), {kind: 'refused', code: 'digest', message: 'cause two'}),
  );
  const error = await t.throwsAsync(run(deps), {instanceOf: Fault, message: /^cause one.*cause two/u});
  t.like(error, {code: 'ENGINE_FAILED'});
});

test('after three busy answers the shortest wait is taken by force', async t => {
  const workers = ['A', 'B', 'C', 'D'].map((letter, index) =>
    scriptedWorker(node(letter), busy(400 - 100 * index), scriptedLease([letter])),
  );
  const started = await run(depsFor(...workers));
  t.is(await text(started), 'C');
  t.deepEqual(
    workers.map(({offers}) => offers.map(({force}) => force)),
    [[false], [false], [false, true], []],
  );
});

test('R111: with every queue full the client hears OVERLOADED and when to come back', async t => {
  const error = await t.throwsAsync(run(depsFor(scriptedWorker(node('A'), busy(700)))), {instanceOf: Fault});
  t.like(error, {code: 'OVERLOADED'});
  t.is(error instanceof Fault ? error.details['retryAfterMs'] : undefined, 700);
});

test('R33: whatever keeps a node from being reached, it is left for the next and left alone for a while', async t => {
  const noName = Object.assign(new Error('getaddrinfo ENOTFOUND spark'), {code: 'ENOTFOUND'});
  for (const failure of [new Fault('PEER_FAILED', 'no'), noName]) {
    const deps = depsFor(scriptedWorker(node('A'), failure), scriptedWorker(node('B'), scriptedLease(['ok'])));
    t.is(await text(await run(deps)), 'ok');
    t.deepEqual(deps.failures, [node('A')]);
  }
});

test('nobody who may run it gives NO_CANDIDATE with each reason', async t => {
  const deps = {...depsFor(), rank: () => weigh([candidate('A', {exclusion: 'draining'})].map(toEntry), asked())};
  await t.throwsAsync(run(deps), {instanceOf: Fault, message: /A: it is draining/u});
});

test('R1: a client that leaves while the first byte is awaited ends the run and no other node is asked', async t => {
  const controller = new AbortController();
  const lease = scriptedLease([null]);
  const other = scriptedWorker(node('B'), scriptedLease(['ok']));
  const answer = run(depsFor(scriptedWorker(node('A'), lease), other), controller.signal);
  setImmediate(() => controller.abort());
  await t.throwsAsync(answer);
  t.is(lease.disposals(), 1);
  t.is(other.offers.length, 0);
});

test('R7: an answer that nobody begins to read gives its slot back when the client leaves', async t => {
  const controller = new AbortController();
  const lease = scriptedLease([' 1', null]);
  await run(depsFor(scriptedWorker(node('A'), lease)), controller.signal);
  controller.abort();
  t.is(lease.disposals(), 1);
});

test('returning from an answer early gives its slot back', async t => {
  const lease = scriptedLease([' 1', ' 2', ' 3']);
  const started = await run(depsFor(scriptedWorker(node('A'), lease)));
  await started.body.next();
  await started.body.return();
  t.is(lease.disposals(), 1);
});

test('S65, S83: once taken for one model it is only moved to the same bytes, unless the workload allows others', async t => {
  for (const [exact, digests] of [
    [true, ['b']],
    [false, ['a', 'b']],
  ] as const) {
    const broken = {...scriptedLease([new Fault('PEER_FAILED', 'gone')]), digest: digest('b')};
    const first = scriptedWorker(node('A'), broken);
    const second = scriptedWorker(node('B'), scriptedLease(['ok']));
    const accepted = {digests: [digest('a'), digest('b')], exact};
    await text(await run(depsFor(first, second), new AbortController().signal, accepted));
    t.deepEqual(first.offers[0]?.digests, [digest('a'), digest('b')]);
    t.deepEqual(second.offers[0]?.digests, digests.map(digest));
  }
});

test('S82, S98: every step of a request is told to the journal', async t => {
  const told: string[] = [];
  const broken = scriptedLease([new Fault('PEER_FAILED', 'gone')]);
  const deps = {
    ...depsFor(
      scriptedWorker(node('A'), busy(10)),
      scriptedWorker(node('B'), broken),
      scriptedWorker(node('C'), {kind: 'refused', code: 'digest', message: 'no'}),
      scriptedWorker(node('D'), scriptedLease(['ok'])),
    ),
    note: (event: RequestEvent) => void told.push('attempt' in event ? `${event.attempt} ${event.kind}` : event.kind),
  };
  await text(await run(deps));
  t.deepEqual(told, [
    '1 offered',
    '1 busy',
    '2 offered',
    '2 accepted',
    '2 broke',
    '3 offered',
    '3 refused',
    '4 offered',
    '4 accepted',
    '4 started',
  ]);
});
