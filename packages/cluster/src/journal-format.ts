import {deserialize, serialize} from 'node:v8';
import {deflateRawSync, inflateRawSync} from 'node:zlib';
import {isRequestId} from '@hearsay/core';
import type {RequestEvent, RequestSummary} from '@hearsay/core';

/**
 * How the journal keeps its values. Both forms carry whatever the types hold, also sets, maps and infinities, so that
 * a decision can be made again from them; Node reads what an older Node has written. Only this machine's daemon
 * writes the file, and only its owner can read it.
 */

export function packEvent(event: RequestEvent): Uint8Array {
  const bytes = serialize(event);
  return event.kind === 'decided' ? deflateRawSync(bytes, {level: 3}) : bytes;
}

/** Undefined for what a newer version has written in a form of its own. */
export function unpackEvent(packed: unknown): RequestEvent | undefined {
  if (!(packed instanceof Uint8Array)) return undefined;
  const bytes = packed[0] === serializedMark ? packed : inflateRawSync(packed);
  const value: unknown = deserialize(bytes);
  return isEvent(value) ? value : undefined;
}

export function packSummary(summary: RequestSummary): string {
  return JSON.stringify(summary);
}

export function unpackSummary(packed: unknown): RequestSummary | undefined {
  const value: unknown = JSON.parse(String(packed));
  return isSummary(value) ? value : undefined;
}

/** First byte of everything that V8 serializes. Deflate never begins with it: that would be a reserved block type. */
const serializedMark = 0xff;

function isEvent(value: unknown): value is RequestEvent {
  return typeof value === 'object' && value !== null && 'kind' in value && typeof value.kind === 'string';
}

function isSummary(value: unknown): value is RequestSummary {
  return typeof value === 'object' && value !== null && 'id' in value && isRequestId(value.id);
}
