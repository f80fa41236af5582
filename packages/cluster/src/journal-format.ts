import {deserialize, serialize} from 'node:v8';
import {deflateRawSync, inflateRawSync} from 'node:zlib';
import {isObject, isRequestId} from '@hearsay/core';
import type {JournaledEvent, RequestSummary} from '@hearsay/core';

/**
 * How the journal keeps its values. Both forms carry whatever the types hold, also sets, maps and infinities, so that
 * a decision can be made again from them; Node reads what an older Node has written. Only this machine's daemon
 * writes the file, and only its owner can read it.
 */

/**
 * Shorter ones are kept as they are: to make them smaller takes longer than to write them. What a request of a mesh of
 * five nodes leaves is below this.
 */
const deflatedBytesMin = 16 * 1024;

/** What happened to one request in a while. */
export function packEvents(events: readonly JournaledEvent[]): Uint8Array {
  const bytes = serialize(events);
  return bytes.length < deflatedBytesMin ? bytes : deflateRawSync(bytes, {level: 3});
}

/** Leaves out what a newer version has written in a form of its own. */
export function unpackEvents(packed: unknown): readonly JournaledEvent[] {
  if (!(packed instanceof Uint8Array)) return [];
  const bytes = packed[0] === serializedMark ? packed : inflateRawSync(packed);
  const values: unknown = deserialize(bytes);
  return Array.isArray(values) ? values.filter(isJournaled) : [];
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

function isJournaled(value: unknown): value is JournaledEvent {
  return (
    isObject(value) && typeof value['sinceMs'] === 'number' && isObject(value['event']) && 'kind' in value['event']
  );
}

function isSummary(value: unknown): value is RequestSummary {
  return isObject(value) && isRequestId(value['id']);
}
