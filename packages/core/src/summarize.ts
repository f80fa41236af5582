import {asFault, Fault} from './fault.ts';
import type {FaultCode} from './fault.ts';
import type {RequestId} from './ids.ts';
import type {Outcome, RequestEvent, RequestSummary} from './journal-port.ts';

/** When something happened: on the wall clock for people, and since the request came for durations. */
export interface Moment {
  readonly wallMs: number;
  readonly sinceMs: number;
  /** Number of this change in the whole journal. */
  readonly change: number;
}

/** Longest reason that the journal keeps. */
const messageLengthMax = 300;

/** Pure: the line of a request after one more event. */
export function summarize(
  before: RequestSummary | undefined,
  id: RequestId,
  event: RequestEvent,
  moment: Moment,
): RequestSummary | undefined {
  const {sinceMs, change} = moment;
  if (event.kind === 'arrived') return begin(id, event, moment);
  if (before === undefined) return undefined; // its beginning is past the retention, or was never seen
  const summary = {...before, change};
  switch (event.kind) {
    case 'planned': {
      const {model, policy, policyFrom} = event;
      return {...summary, model, policy, policyFrom};
    }
    case 'queued':
      return {...summary, position: event.position, estimateMs: event.waitMs};
    case 'offered':
      return {...summary, attempts: event.attempt, estimateMs: event.estimateMs, position: undefined};
    case 'accepted':
      return {...summary, attempts: event.attempt, digest: event.digest};
    case 'started': {
      const {attempt, node, nodeName, digest, model, status} = event;
      return {...summary, attempts: attempt, node, nodeName, digest, model, status, firstByteMs: sinceMs};
    }
    case 'ended': {
      const {outcome, code, message, usage} = event;
      return {...summary, outcome, code, message, usage, totalMs: sinceMs, position: undefined};
    }
    case 'decided':
    case 'busy':
    case 'refused':
    case 'broke':
    case 'leaving':
      return summary;
  }
}

/** Pure: the name of an end, from what ended it; `undefined` is a whole answer, whose status says more. */
export function outcomeOf(
  error: unknown,
  status: number = 200,
): {readonly outcome: Outcome; readonly code: FaultCode | undefined; readonly message: string | undefined} {
  if (error === undefined) {
    if (status === 200) return {outcome: 'finished', code: undefined, message: undefined};
    return {outcome: status < 500 ? 'refused' : 'failed', code: undefined, message: `llama-server answered ${status}`};
  }
  if (error instanceof Error && error.name === 'AbortError') {
    return {outcome: 'cancelled', code: 'CANCELLED', message: 'the client went away'};
  }
  const fault = asFault(error, 'INTERNAL');
  return {outcome: outcomes[fault.code] ?? 'failed', code: fault.code, message: reasonOf(fault)};
}

const outcomes: Partial<Readonly<Record<FaultCode, Outcome>>> = {
  CANCELLED: 'cancelled',
  INTERRUPTED: 'interrupted',
  BAD_REQUEST: 'refused',
  FORBIDDEN: 'refused',
  MODEL_NOT_FOUND: 'refused',
  NO_CANDIDATE: 'refused',
  OVERLOADED: 'refused',
};

/**
 * Pure: the reason of a fault as the journal may keep it. What llama-server itself answered is left out: its messages
 * quote what it could not parse, and that may be a prompt.
 */
export function reasonOf(error: unknown): string {
  const fault = asFault(error, 'INTERNAL');
  const status = engineStatus(fault);
  return status === undefined ? fault.message.slice(0, messageLengthMax) : `llama-server answered ${status}`;
}

/** A fault made of llama-server's own answer carries its status. */
function engineStatus({details: {status}, cause}: Fault): number | undefined {
  if (typeof status === 'number') return status;
  return cause instanceof Fault ? engineStatus(cause) : undefined;
}

function begin(
  id: RequestId,
  event: Extract<RequestEvent, {kind: 'arrived'}>,
  {wallMs, change}: Moment,
): RequestSummary {
  const {role, model, endpoint, policy, bodyBytes, caller, from} = event;
  return {
    id,
    role,
    atMs: wallMs,
    outcome: undefined,
    code: undefined,
    message: undefined,
    asked: model,
    endpoint,
    policy,
    policyFrom: undefined,
    bodyBytes,
    caller,
    from,
    node: undefined,
    nodeName: undefined,
    digest: undefined,
    model: undefined,
    status: undefined,
    attempts: 0,
    estimateMs: undefined,
    firstByteMs: undefined,
    totalMs: undefined,
    usage: undefined,
    change,
  };
}
