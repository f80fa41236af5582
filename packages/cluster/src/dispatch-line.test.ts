import {toEntry, weigh} from '@hearsay/core';
import type {Candidate} from '@hearsay/core';
import test from 'ava';
import {asked, candidate, node} from '../../../test/support/builders.ts';
import {depsFor, run} from '../../../test/support/dispatch-trial.ts';
import {scriptedLease, scriptedWorker} from '../../../test/support/scripted-worker.ts';
import {until} from '../../../test/support/until.ts';
import type {Room} from './fair-queue.ts';

const turn = {allow: (): void => undefined, [Symbol.dispose]: (): void => undefined};

const ready = {state: 'ready', slots: 2, busy: 2, freeSlots: 0, waitMs: 5000} as const;

test('a request that waits for its turn sees a slot that has become free, and what has come', async t => {
  let nodes: Readonly<Record<string, Partial<Candidate>>> = {A: ready};
  let look: (() => Room) | undefined;
  const go = Promise.withResolvers<void>();
  const deps = depsFor(scriptedWorker(node('A'), scriptedLease(['ok'])));
  const running = run({
    ...deps,
    rank: () =>
      weigh(
        Object.entries(nodes).map(([name, changes]) => toEntry(candidate(name, changes))),
        asked(),
      ),
    line: {
      isCrowded: () => true,
      async turn(at) {
        look = at.look;
        await go.promise;
        return turn;
      },
    },
  });
  await until('it waits', () => look);
  t.deepEqual(look?.(), {capacity: 2, isFree: false});
  nodes = {A: ready, B: ready};
  t.deepEqual(look?.(), {capacity: 4, isFree: false});
  nodes = {A: {...ready, busy: 1, freeSlots: 1, waitMs: 0}};
  t.deepEqual(look?.(), {capacity: 2, isFree: true});
  nodes = {A: {...ready, ageMs: 6000}};
  t.deepEqual(look?.(), {capacity: 2, isFree: false}, 'that the wait should be over is no proof');
  nodes = {};
  t.deepEqual(look?.(), {capacity: 0, isFree: false});
  nodes = {A: ready};
  go.resolve();
  await running;
});

test('a request that a free node takes has nobody explain the other nodes first', async t => {
  let explained = 0;
  const deps = depsFor(scriptedWorker(node('A'), scriptedLease(['ok'])));
  await run({
    ...deps,
    rank: (...question) => {
      const decision = deps.rank(...question);
      return {
        best: decision.best,
        get ranked() {
          explained += 1;
          return decision.ranked;
        },
      };
    },
    line: {isCrowded: () => false, turn: async () => turn},
  });
  t.is(explained, 0);
});

test('a node that has failed one request still has its slots for the others that wait', async t => {
  const allowed: number[] = [];
  const broken = scriptedWorker(node('A'), {kind: 'refused', code: 'broken', message: 'no'});
  const deps = depsFor(broken, scriptedWorker(node('B'), scriptedLease(['ok'])));
  await run({
    ...deps,
    rank: (_digests, {tried}) =>
      weigh(
        ['A', 'B'].map(name => {
          const exclusion = tried.has(node(name)) ? 'tried' : undefined;
          return toEntry(candidate(name, {...ready, queued: name === 'A' ? 0 : 1, exclusion}));
        }),
        asked(),
      ),
    line: {
      isCrowded: () => true,
      turn: async () => ({...turn, allow: capacity => void allowed.push(capacity)}),
    },
  });
  t.deepEqual(allowed, [4]);
});
