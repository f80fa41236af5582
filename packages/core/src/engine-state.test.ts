import test from 'ava';
import fc from 'fast-check';
import {stepEngine} from './engine-state.ts';
import type {EngineEvent, EnginePolicy, EngineState} from './engine-state.ts';

const policy: EnginePolicy = {
  startTimeoutMs: 60_000,
  stableAfterMs: 10_000,
  drainTimeoutMs: 10_000,
  killAfterMs: 3_000,
  coolDownMs: 30_000,
  maxAttempts: 3,
  backoffMs: attempt => 500 * 2 ** attempt,
};

const waiting: readonly EngineState['kind'][] = ['starting', 'draining', 'stopping', 'backing off', 'broken'];

/**
 * What the machine believes, beside what is true outside: the process, its timer, and the starts since it was last
 * well.
 */
class Life {
  state: EngineState = {kind: 'stopped', attempt: 0};
  processes = 0;
  processesMax = 0;
  signalsToNobody = 0;
  timer = false;
  startsInARow = 0;
  startsInARowMax = 0;

  /** Events that the world cannot produce now are left out: nobody exits twice, and no timer fires that was not set. */
  see(event: EngineEvent): void {
    if ((event.kind === 'exited' || event.kind === 'healthy') && this.processes === 0) return;
    if (event.kind === 'deadline') {
      if (!this.timer) return;
      this.timer = false;
    }
    if (event.kind === 'exited') this.processes -= 1;
    const before = this.state;
    const {state, effects} = stepEngine(before, event, policy);
    this.state = state;
    if (state.kind !== before.kind) this.timer = false;
    // Asked to stop, stable, or cooled down: the count begins anew.
    const isWell = (state.kind === 'stopped' || state.kind === 'ready') && state.attempt === 0;
    if (isWell) this.startsInARow = 0;
    for (const {kind} of effects) {
      if (kind === 'spawn') this.#spawn();
      if (kind === 'setDeadline') this.timer = true;
      if ((kind === 'terminate' || kind === 'kill') && this.processes === 0) this.signalsToNobody += 1;
    }
  }

  #spawn(): void {
    this.processes += 1;
    this.processesMax = Math.max(this.processesMax, this.processes);
    this.startsInARow += 1;
    this.startsInARowMax = Math.max(this.startsInARowMax, this.startsInARow);
  }
}

const anyEvent: fc.Arbitrary<EngineEvent> = fc.oneof(
  fc.constantFrom<EngineEvent>(
    {kind: 'wanted'},
    {kind: 'healthy'},
    {kind: 'acquired'},
    {kind: 'released'},
    {kind: 'unwanted'},
    {kind: 'deadline'},
    {kind: 'exited', reason: 'crashed', final: false},
  ),
  {arbitrary: fc.constant<EngineEvent>({kind: 'exited', reason: 'damaged file', final: true}), weight: 1},
);
const anyLife = fc.array(anyEvent, {maxLength: 80});

/**
 * Runs the law after every event of many random lives; a failure prints its seed and the shortest life that breaks
 * it.
 */
function always(law: (life: Life) => boolean): void {
  fc.assert(
    fc.property(anyLife, events => {
      const life = new Life();
      return events.every(event => {
        life.see(event);
        return law(life);
      });
    }),
    {numRuns: 2_000},
  );
}

function after(...events: readonly EngineEvent[]): EngineState {
  const life = new Life();
  for (const event of events) life.see(event);
  return life.state;
}

const wanted: EngineEvent = {kind: 'wanted'};
const healthy: EngineEvent = {kind: 'healthy'};
const deadline: EngineEvent = {kind: 'deadline'};
const crashed: EngineEvent = {kind: 'exited', reason: 'crashed', final: false};

test('R91: no life of an engine ever has two processes', t => {
  t.notThrows(() => always(life => life.processesMax <= 1 && life.processes >= 0));
});

test('no life of an engine ever signals a process that is not there', t => {
  t.notThrows(() => always(life => life.signalsToNobody === 0));
});

test('R87: no life of an engine has more than the allowed starts in a row, crash loops and start time-outs included', t => {
  t.notThrows(() => always(life => life.startsInARowMax <= policy.maxAttempts));
});

test('no state that waits is ever without a timer that ends it', t => {
  t.notThrows(() => always(life => life.timer || !waiting.includes(life.state.kind)));
});

test('a process lives exactly in the states that say so', t => {
  const withProcess: readonly EngineState['kind'][] = ['starting', 'ready', 'draining', 'stopping'];
  t.notThrows(() => always(life => life.processes === (withProcess.includes(life.state.kind) ? 1 : 0)));
});

test('the number of requests in flight never falls below zero', t => {
  t.notThrows(() => always(({state}) => !('inFlight' in state) || state.inFlight >= 0));
});

test('R87: three crashes at start break the engine, and the cool-down heals it', t => {
  const events = [wanted, crashed, deadline, crashed, deadline, crashed];
  t.deepEqual(after(...events), {kind: 'broken', reason: 'crashed'});
  t.deepEqual(after(...events, wanted), {kind: 'broken', reason: 'crashed'});
  t.deepEqual(after(...events, deadline), {kind: 'stopped', attempt: 0});
});

test('a final exit breaks the engine at the first attempt', t => {
  const state = after(wanted, {kind: 'exited', reason: 'damaged file', final: true});
  t.deepEqual(state, {kind: 'broken', reason: 'damaged file'});
});

test('R87: failed starts are remembered while nobody wants the engine, until they have cooled down', t => {
  const rested = [wanted, healthy, crashed, {kind: 'unwanted'} as const];
  t.deepEqual(after(...rested), {kind: 'stopped', attempt: 1});
  t.deepEqual(after(...rested, wanted), {kind: 'starting', attempt: 2});
  t.deepEqual(after(...rested, deadline, wanted), {kind: 'starting', attempt: 1});
});

test('a start that times out is stopped first and counts as an attempt', t => {
  t.deepEqual(after(wanted, deadline), {kind: 'stopping', failedAttempt: 1});
  t.like(after(wanted, deadline, crashed), {kind: 'backing off', attempt: 1});
});

test('an engine that was stable forgets its earlier failures', t => {
  t.like(after(wanted, crashed, deadline, healthy), {kind: 'ready', attempt: 2});
  t.like(after(wanted, crashed, deadline, healthy, deadline), {kind: 'ready', attempt: 0});
});

test('a draining engine stops with its last request', t => {
  const drained = after(wanted, healthy, {kind: 'acquired'}, {kind: 'unwanted'}, {kind: 'released'});
  t.deepEqual(drained, {kind: 'stopping', failedAttempt: undefined});
});
