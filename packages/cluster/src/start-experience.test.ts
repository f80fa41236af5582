import {mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import type {EngineSnapshot, EngineStateName} from '@hearsay/core';
import {digest, model} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {startExperience} from './start-experience.ts';
import type {ExperienceDeps} from './start-experience.ts';

const run = {
  bodyBytes: 800,
  timings: {cachedTokens: 100, promptTokens: 100, promptMs: 200, outputTokens: 50, outputMs: 1000},
};

async function temporaryFile(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-experience-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true}));
  return join(folder, 'experience.json');
}

/** Engines whose state the test sets. */
function trial(): {
  deps: ExperienceDeps;
  clock: ReturnType<typeof manualClock>;
  set: (state: EngineStateName, loadMs?: number) => void;
} {
  const clock = manualClock();
  let state: EngineStateName = 'stopped';
  let lastLoadMs: number | undefined;
  let changed: () => void = () => undefined;
  const stored = {...model('m', 'a'), key: 'm', files: ['m'] as const, problem: undefined, hashed: undefined};
  const snapshot = (): EngineSnapshot => ({
    key: 'm',
    model: {...stored, modifiedWallMs: 0},
    state,
    loadMs: lastLoadMs,
    slots: 1,
    busy: 0,
    queued: 0,
    waitMs: 0,
    context: 1,
    readySinceWallMs: undefined,
    unloadInMs: undefined,
    failure: undefined,
    processId: undefined,
  });
  const engines: ExperienceDeps['engines'] = {
    engines: () => [snapshot()],
    onChange(call) {
      changed = call;
      return {[Symbol.dispose]: () => undefined};
    },
  };
  const random = {next: () => 0, bytes: (length: number) => new Uint8Array(length)};
  return {
    deps: {clock, random, log: () => undefined, engines},
    clock,
    set(next, loadMs) {
      state = next;
      lastLoadMs = loadMs;
      changed();
    },
  };
}

test('how long a token is is not learned from a picture', async t => {
  const {deps, clock} = trial();
  await using experience = await startExperience(await temporaryFile(t), deps);
  experience.answered(digest('a'), {...run, bodyBytes: 3_000_000});
  await clock.advance(0);
  t.like(experience.told(digest('a')), {bytesPerToken: undefined, outputTokens: 50});
});

test('speeds come from the timings of an answer, and are told', async t => {
  const {deps, clock} = trial();
  await using experience = await startExperience(await temporaryFile(t), deps);
  let news = 0;
  experience.onNews(() => (news += 1));
  experience.answered(digest('a'), run);
  t.is(experience.told(digest('a')), undefined);
  await clock.advance(0);
  t.is(news, 1);
  t.deepEqual(experience.told(digest('a')), {
    prefillTps: 500,
    decodeTps: 50,
    loadMs: undefined,
    holdMs: 1200,
    outputTokens: 50,
    bytesPerToken: 4,
  });
});

test('news waits for its turn, and what is no news is not told', async t => {
  const {deps, clock} = trial();
  await using experience = await startExperience(await temporaryFile(t), deps);
  let news = 0;
  experience.onNews(() => (news += 1));
  experience.answered(digest('a'), run);
  await clock.advance(0);
  experience.answered(digest('a'), run);
  await clock.advance(100);
  t.is(news, 1, 'nothing has changed');
  experience.answered(digest('b'), run);
  await clock.advance(1000);
  t.is(news, 1, 'the last was less than two seconds ago');
  await clock.advance(1000);
  t.is(news, 2);
});

test('a load is as long as the engine was starting', async t => {
  const {deps, clock, set} = trial();
  await using experience = await startExperience(await temporaryFile(t), deps);
  set('starting');
  await clock.advance(2500);
  set('ready');
  await clock.advance(0);
  t.is(experience.told(digest('a'))?.loadMs, 2500);
});

test('what an engine waits for memory before it loads is no part of its load', async t => {
  const {deps, clock, set} = trial();
  await using experience = await startExperience(await temporaryFile(t), deps);
  set('starting', 5000);
  await clock.advance(90_000);
  set('ready', 2500);
  await clock.advance(0);
  t.is(experience.told(digest('a'))?.loadMs, 2500);
});

test('what was learned survives a restart', async t => {
  const file = await temporaryFile(t);
  {
    await using before = await startExperience(file, trial().deps);
    before.answered(digest('a'), run);
  }
  await using after = await startExperience(file, trial().deps);
  t.like(after.told(digest('a')), {prefillTps: 500, decodeTps: 50, loadMs: undefined});
});

test('a damaged file costs only what was learned', async t => {
  const file = await temporaryFile(t);
  await writeFile(file, '{"version":1,"models":');
  {
    await using experience = await startExperience(file, trial().deps);
    t.is(experience.told(digest('a')), undefined);
    experience.answered(digest('a'), run);
  }
  t.regex(await readFile(file, 'utf8'), /decodeTps/u);
});
