import {decodeSignedRecord, encodeSignedRecord, Fault} from '@hearsay/core';
import type {FaultCode, SignedRecord} from '@hearsay/core';

/** What both ends of a lease stream agree on; docs/protocol.md says it for other implementations. */
export const leaseProtocol = '/hearsay/lease/1';

/** Trailer with the worker's newest record: it arrives only after an answer that is whole. */
export const recordTrailer = 'x-hearsay-record';

/** Header of an answer that says the run broke before there was any output; the body is then the reason, as text. */
export const faultHeader = 'x-hearsay-fault';

/** Longest reason that is read from a peer. */
export const reasonBytesMax: number = 4096;

/** Faults of a worker that keep their meaning across the mesh. Any other arrives as PEER_FAILED. */
const carriedCodes = ['BAD_REQUEST', 'OVERLOADED', 'ENGINE_MISSING', 'ENGINE_FAILED', 'BAD_FILE', 'TIMED_OUT'] as const;

export function carriedCode(text: string): FaultCode {
  return carriedCodes.find(code => code === text) ?? 'PEER_FAILED';
}

export function recordToText(record: SignedRecord): string {
  return Buffer.from(encodeSignedRecord(record)).toString('base64');
}

/** A trailer that cannot be read costs only the freshness of the record, never the answer. */
export function recordFromText(text: string | undefined): SignedRecord | undefined {
  if (text === undefined) return undefined;
  try {
    return decodeSignedRecord(Buffer.from(text, 'base64'));
  } catch {
    return undefined;
  }
}

/** What the caller is told when it ended the run itself. */
export function cancelled(signal: AbortSignal): Fault {
  return signal.reason instanceof Fault
    ? signal.reason
    : new Fault('CANCELLED', 'the request was cancelled', {cause: signal.reason});
}
