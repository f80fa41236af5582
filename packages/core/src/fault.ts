/**
 * Everything that can go wrong, by name. A *no* (busy, refused) is a value and never a fault; a fault is something
 * that broke or that a person must change. The HTTP meaning of a code is given in `gateway`, nowhere else.
 */
export type FaultCode =
  | 'BAD_CONFIG' // a setting or flag cannot be used; the message says which
  | 'BAD_REQUEST' // the client sent something that no node could run
  | 'FORBIDDEN' // the key of the application lacks a right; the message says which
  | 'MODEL_NOT_FOUND' // no admitted node knows a model of that name
  | 'NODE_NOT_FOUND' // a command names a node that this one does not know
  | 'NO_CANDIDATE' // nodes know the model, but none may or can run it now
  | 'OVERLOADED' // every candidate is busy and the queues are full
  | 'ENGINE_MISSING' // no llama-server on this machine
  | 'ENGINE_FAILED' // llama-server did not start, died, or answered nonsense
  | 'INSTALL_FAILED' // an engine could not be downloaded, built or verified
  | 'PEER_FAILED' // the other node went away or broke the protocol
  | 'INTERRUPTED' // broken after output had begun; never replayed
  | 'CANCELLED' // the client went away
  | 'TIMED_OUT' // a named limit passed
  | 'BAD_FILE' // a model file is damaged, incomplete, or not what its name says
  | 'ALREADY_RUNNING' // another daemon owns the data folder
  | 'INTERNAL'; // a bug of ours

export interface FaultOptions {
  readonly cause?: unknown;
  /** Plain data for logs, journal and error bodies. Never secrets, prompts or bytes from the network. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The one error class. The message says what happened and what to do about it. */
export class Fault extends Error {
  readonly code: FaultCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, options.cause === undefined ? undefined : {cause: options.cause});
    this.name = 'Fault';
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** Text of anything thrown; never empty (field report R15). Of errors that only wrap another, that one's. */
export function describeError(error: unknown): string {
  if (error instanceof AggregateError && error.message === '' && error.errors.length > 0) {
    return describeError(error.errors[0]);
  }
  if (error instanceof Error && error.message === 'fetch failed' && error.cause !== undefined) {
    return describeError(error.cause);
  }
  if (error instanceof Error) return error.message || error.name || 'unnamed error';
  const text = String(error);
  return text === '' ? 'empty error' : text;
}

/** True of an error with one of these codes, as the system's errors have them: `ENOENT`. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code);
}

/** A thrown value as a fault: faults stay what they are, anything else gets the given code. */
export function asFault(error: unknown, code: FaultCode): Fault {
  return error instanceof Fault ? error : new Fault(code, describeError(error), {cause: error});
}
