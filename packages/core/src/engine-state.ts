/** The life of one llama-server process. `attempt` counts starts since it was last stable or had time to cool down. */
export type EngineState =
  | {readonly kind: 'stopped'; readonly attempt: number}
  | {readonly kind: 'starting'; readonly attempt: number}
  | {readonly kind: 'ready'; readonly attempt: number; readonly inFlight: number}
  | {readonly kind: 'draining'; readonly inFlight: number}
  | {readonly kind: 'stopping'; readonly failedAttempt: number | undefined}
  | {readonly kind: 'backing off'; readonly attempt: number; readonly reason: string}
  | {readonly kind: 'broken'; readonly reason: string};

export type EngineEvent =
  | {readonly kind: 'wanted'}
  | {readonly kind: 'healthy'}
  | {readonly kind: 'acquired'}
  | {readonly kind: 'released'}
  | {readonly kind: 'unwanted'}
  | {readonly kind: 'deadline'}
  /** `final`: starting again cannot help (damaged file, unknown architecture, bad flag). */
  | {readonly kind: 'exited'; readonly reason: string; readonly final: boolean};

export type EngineEffect =
  | {readonly kind: 'spawn'}
  | {readonly kind: 'probe'}
  | {readonly kind: 'terminate'}
  | {readonly kind: 'kill'}
  | {readonly kind: 'setDeadline'; readonly afterMs: number}
  | {readonly kind: 'settleWaiters'};

/** Durations in milliseconds. */
export interface EnginePolicy {
  readonly startTimeoutMs: number;
  /** Ready for this long: earlier failures are forgotten. */
  readonly stableAfterMs: number;
  readonly drainTimeoutMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly killAfterMs: number;
  /**
   * How long a broken engine refuses at once before it may be tried again, and how long failed starts are remembered.
   */
  readonly coolDownMs: number;
  readonly maxAttempts: number;
  readonly backoffMs: (attempt: number) => number;
}

export interface EngineStep {
  readonly state: EngineState;
  readonly effects: readonly EngineEffect[];
}

/**
 * Pure: what an engine becomes after an event, and what must be done about it. Events that mean nothing are ignored.
 */
export function stepEngine(state: EngineState, event: EngineEvent, policy: EnginePolicy): EngineStep {
  switch (state.kind) {
    case 'stopped':
      if (event.kind === 'wanted') return start(state.attempt + 1, policy);
      return event.kind === 'deadline' ? to(stopped) : stay(state);

    case 'starting':
      if (event.kind === 'healthy') return becomeReady(state.attempt, policy);
      if (event.kind === 'exited') return retry(state.attempt, event, policy);
      if (event.kind === 'unwanted') return terminate(undefined, policy);
      if (event.kind === 'deadline') return terminate(state.attempt, policy);
      return stay(state);

    case 'ready':
      if (event.kind === 'acquired') return to({...state, inFlight: state.inFlight + 1});
      if (event.kind === 'released') return to({...state, inFlight: Math.max(0, state.inFlight - 1)});
      if (event.kind === 'deadline') return to({...state, attempt: 0}); // it has been stable
      if (event.kind === 'exited') return retry(state.attempt, event, policy);
      if (event.kind === 'unwanted') return drain(state.inFlight, policy);
      return stay(state);

    case 'draining':
      if (event.kind === 'released' && state.inFlight > 1) return to({...state, inFlight: state.inFlight - 1});
      if (event.kind === 'released' || event.kind === 'deadline') return terminate(undefined, policy);
      if (event.kind === 'exited') return to(stopped, {kind: 'settleWaiters'});
      return stay(state);

    case 'stopping': // a killed process is gone at once, except when the kernel holds it: then it is killed again
      if (event.kind === 'deadline') return to(state, {kind: 'kill'}, deadline(policy.killAfterMs));
      if (event.kind !== 'exited') return stay(state);
      if (state.failedAttempt === undefined) return to(stopped, {kind: 'settleWaiters'});
      return retry(state.failedAttempt, {reason: 'did not become healthy in time', final: false}, policy);

    case 'backing off':
      if (event.kind === 'deadline') return start(state.attempt + 1, policy);
      if (event.kind === 'unwanted') return rest(state.attempt, policy);
      return stay(state);

    case 'broken': // cools down, so that a popular broken model is not restarted by every request (R87)
      if (event.kind === 'deadline') return to(stopped);
      return event.kind === 'wanted' ? to(state, {kind: 'settleWaiters'}) : stay(state);
  }
}

const stopped: EngineState = {kind: 'stopped', attempt: 0};
const stay = (state: EngineState): EngineStep => ({state, effects: []});
const to = (state: EngineState, ...effects: readonly EngineEffect[]): EngineStep => ({state, effects});
const deadline = (afterMs: number): EngineEffect => ({kind: 'setDeadline', afterMs});

function start(attempt: number, policy: EnginePolicy): EngineStep {
  return to({kind: 'starting', attempt}, {kind: 'spawn'}, {kind: 'probe'}, deadline(policy.startTimeoutMs));
}

function becomeReady(attempt: number, policy: EnginePolicy): EngineStep {
  return to({kind: 'ready', attempt, inFlight: 0}, {kind: 'settleWaiters'}, deadline(policy.stableAfterMs));
}

function retry(attempt: number, why: {reason: string; final: boolean}, policy: EnginePolicy): EngineStep {
  if (!why.final && attempt < policy.maxAttempts) {
    return to({kind: 'backing off', attempt, reason: why.reason}, deadline(policy.backoffMs(attempt)));
  }
  return to({kind: 'broken', reason: why.reason}, {kind: 'settleWaiters'}, deadline(policy.coolDownMs));
}

/**
 * Nobody waits for the next start any more. The failed ones still count, or requests that kill their engine never
 * break it.
 */
function rest(attempt: number, policy: EnginePolicy): EngineStep {
  return to({kind: 'stopped', attempt}, {kind: 'settleWaiters'}, deadline(policy.coolDownMs));
}

function drain(inFlight: number, policy: EnginePolicy): EngineStep {
  if (inFlight === 0) return terminate(undefined, policy);
  return to({kind: 'draining', inFlight}, deadline(policy.drainTimeoutMs));
}

function terminate(failedAttempt: number | undefined, policy: EnginePolicy): EngineStep {
  return to({kind: 'stopping', failedAttempt}, {kind: 'terminate'}, deadline(policy.killAfterMs));
}
