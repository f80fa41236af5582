import type {NodeId, Worker} from '@hearsay/core';
import test from 'ava';
import {node} from '../../../test/support/builders.ts';
import {depsFor, run, text} from '../../../test/support/dispatch-trial.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {scriptedLease, scriptedWorker} from '../../../test/support/scripted-worker.ts';
import type {DispatchDeps} from './dispatch.ts';

/** A node that takes the request and then says nothing. */
const silent = (letter: string): Worker => scriptedWorker(node(letter), scriptedLease([null]));

test('R27, S83: a node that sends nothing within its budget is left for the next, and left alone for as long', async t => {
  const clock = manualClock();
  const left: (readonly [NodeId, number | undefined])[] = [];
  const deps: DispatchDeps = {
    ...depsFor(silent('A'), scriptedWorker(node('B'), scriptedLease(['ok']))),
    clock,
    failed: (id, forMs) => void left.push([id, forMs]),
  };
  const answer = run(deps);
  await clock.advance(9000);
  t.deepEqual(left, []);
  await clock.advance(60_000);
  t.is(await text(await answer), 'ok');
  t.deepEqual(
    left.map(([id, forMs = 0]) => [id, forMs >= 10_000]),
    [[node('A'), true]],
  );
});

test('nobody is left for nothing: without another node it is waited for, however long', async t => {
  const clock = manualClock();
  const controller = new AbortController();
  const deps = {...depsFor(silent('A')), clock};
  let ended = false;
  const answer = run(deps, controller.signal).finally(() => (ended = true));
  await clock.advance(3_600_000);
  t.false(ended);
  controller.abort();
  await t.throwsAsync(answer);
  t.deepEqual(deps.failures, []);
});

test('after the first byte silence is no reason to leave', async t => {
  const clock = manualClock();
  const deps = {
    ...depsFor(scriptedWorker(node('A'), scriptedLease([' 1', null])), scriptedWorker(node('B'), scriptedLease(['x']))),
    clock,
  };
  const started = await run(deps);
  await clock.advance(3_600_000);
  t.is(started.attempt, 1);
  t.deepEqual(deps.failures, []);
  await started.body.return();
});

const tooLong = '{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}';

/** As `depsFor`, each node with the context of one slot. */
function depsWithContexts(...nodes: readonly (readonly [Worker, number])[]): DispatchDeps {
  const deps = depsFor(...nodes.map(([worker]) => worker));
  return {
    ...deps,
    rank: (...question) => {
      const ranked = deps.rank(...question).ranked.map(one => {
        const contextTokens = nodes.find(([worker]) => worker.node === one.node)?.[1];
        return {...one, contextTokens};
      });
      return {best: ranked.find(({place}) => place === 0), ranked};
    },
  };
}

test('R25: a prompt too long for one context goes to a node with a longer one, and to no other', async t => {
  const equal = scriptedWorker(node('B'), scriptedLease(['wrong']));
  const deps = depsWithContexts(
    [scriptedWorker(node('A'), scriptedLease([tooLong], {status: 400})), 4096],
    [equal, 4096],
    [scriptedWorker(node('C'), scriptedLease(['ok'])), 32_768],
  );
  t.is(await text(await run(deps)), 'ok');
  t.is(equal.offers.length, 0);
});

test("R25, R24: a prompt too long for every context keeps the engine's own answer", async t => {
  const deps = depsWithContexts(
    [scriptedWorker(node('A'), scriptedLease([tooLong], {status: 400})), 4096],
    [scriptedWorker(node('B'), scriptedLease(['wrong'])), 4096],
  );
  const started = await run(deps);
  t.is(started.response.status, 400);
  t.is(await text(started), tooLong);
});

const tooLarge = JSON.stringify({
  error: {
    code: 500,
    message: 'input (600 tokens) is too large to process. increase the physical batch size (current batch size: 512)',
    type: 'server_error',
  },
});

test('R25: a text too large for one batch goes to a node of the same context, and to none that cannot hold it', async t => {
  const small = scriptedWorker(node('B'), scriptedLease(['wrong']));
  const large = scriptedWorker(node('C'), scriptedLease(['ok']));
  const deps = depsWithContexts(
    [scriptedWorker(node('A'), scriptedLease([tooLarge], {status: 500})), 2048],
    [small, 599],
    [large, 2048],
  );
  t.is(await text(await run(deps)), 'ok');
  t.is(small.offers.length, 0);
});

test("R25, R108: a text too large for every batch keeps the engine's own answer", async t => {
  const second = scriptedWorker(node('B'), scriptedLease([tooLarge], {status: 500}));
  const deps = depsWithContexts(
    [scriptedWorker(node('A'), scriptedLease([tooLarge], {status: 500})), 2048],
    [second, 2048],
  );
  const failed: unknown[] = [];
  const started = await run({...deps, engineFailed: (...engine) => void failed.push(engine)});
  t.is(second.offers.length, 1);
  t.is(started.response.status, 500);
  t.is(await text(started), tooLarge);
  t.deepEqual(failed, []);
});
