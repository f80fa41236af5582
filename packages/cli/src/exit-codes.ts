import type {FaultCode} from '@hearsay/core';

/** Exit codes of the command line, for scripts. */
export const exitCodes = {
  ok: 0,
  failure: 1,
  usage: 2,
  notFound: 3,
  unreachable: 4,
  busy: 5,
  warning: 6,
  interrupted: 130,
} as const;

export function exitCodeOf(code: FaultCode): number {
  switch (code) {
    case 'BAD_CONFIG':
    case 'BAD_REQUEST':
      return exitCodes.usage;
    case 'MODEL_NOT_FOUND':
    case 'NODE_NOT_FOUND':
      return exitCodes.notFound;
    case 'PEER_FAILED':
      return exitCodes.unreachable;
    case 'OVERLOADED':
    case 'NO_CANDIDATE':
    case 'TIMED_OUT':
      return exitCodes.busy;
    case 'CANCELLED':
      return exitCodes.interrupted;
    case 'FORBIDDEN':
    case 'ENGINE_MISSING':
    case 'ENGINE_FAILED':
    case 'INSTALL_FAILED':
    case 'INTERRUPTED':
    case 'BAD_FILE':
    case 'ALREADY_RUNNING':
    case 'INTERNAL':
      return exitCodes.failure;
  }
}
