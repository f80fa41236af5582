import test from 'ava';
import type {EngineSnapshot, StoredModel} from '@hearsay/core';
import {storedModel} from '../../../test/support/engine-trial.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {unloadRemoved} from './unload-removed.ts';

const model = storedModel('m', '/m');
const engine: EngineSnapshot = {
  key: model.key,
  model,
  state: 'ready',
  slots: 1,
  busy: 0,
  queued: 0,
  waitMs: 0,
  context: 2048,
  readySinceWallMs: 0,
  unloadInMs: Infinity,
  failure: undefined,
  processId: 1,
};

/** A machine with one loaded model, whose files come and go as the test says. */
function machine(busy = 0) {
  const clock = manualClock();
  let list: readonly StoredModel[] = [model];
  let tell = (): void => {};
  const now = {busy, stops: 0};
  unloadRemoved({
    clock,
    log: () => {},
    models: {
      list: () => list,
      onChange: listener => {
        tell = listener;
        return {[Symbol.dispose]: () => {}};
      },
    },
    engines: {
      engines: () => (now.stops > 0 ? [] : [{...engine, busy: now.busy}]),
      stop: async () => void (now.stops += 1),
    },
  });
  const set = (models: readonly StoredModel[]): void => {
    list = models;
    tell();
  };
  return {clock, now, set};
}

test('the engine of a model whose files are gone is ended after a while', async t => {
  const {clock, now, set} = machine();
  set([]);
  await clock.advance(25_000);
  t.is(now.stops, 0);
  await clock.advance(20_000);
  t.is(now.stops, 1);
});

test('files that come back in time, or that only have a problem, cost no engine', async t => {
  const {clock, now, set} = machine();
  set([]);
  await clock.advance(20_000);
  set([{...model, problem: 'incomplete: the file is still being written'}]);
  await clock.advance(60_000);
  t.is(now.stops, 0);
});

test('whoever uses an engine whose files are gone may end first', async t => {
  const {clock, now, set} = machine(1);
  set([]);
  await clock.advance(120_000);
  t.is(now.stops, 0);
  now.busy = 0;
  await clock.advance(10_000);
  t.is(now.stops, 1);
});
