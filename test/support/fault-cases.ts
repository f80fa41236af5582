import {randomUUID} from 'node:crypto';
import type {Mishap} from './scripted-engine.ts';

/** One way to ask, in one dialect. */
export interface FaultEndpoint {
  readonly path: string;
  /** A tiny model that can do it; tiny-count-F16 unless given. */
  readonly model?: 'tiny-embed-F16' | 'tiny-rerank-F16';
  readonly body: (prompt: string, stream: boolean) => object;
  /** How a stream ends that broke, and how one that did not; absent where nothing streams. */
  readonly stream?: {readonly errorEnd: RegExp; readonly endMark: RegExp};
  /** When no engine counts, an estimate is the answer. */
  readonly estimates?: true;
}

export interface FaultDialect {
  readonly name: string;
  /** A whole error body. */
  readonly errorBody: RegExp;
  readonly endpoints: readonly FaultEndpoint[];
}

export type Place = 'local' | 'remote';

/** One request of the table. */
export interface FaultCase {
  readonly endpoint: FaultEndpoint;
  readonly mishap: Mishap & {readonly id: string};
  readonly isStream: boolean;
  readonly place: Place;
  /** Says which one it is, when it fails. */
  readonly label: string;
}

const moments = ['before headers', 'after headers', 'mid-token', 'before the end mark'] as const;

/** What an engine does that lies or hangs up. */
export const lies: readonly Mishap[] = [
  ...moments.flatMap(at => (['dies', 'error event', 'clean end', 'stale length'] as const).map(how => ({at, how}))),
  {at: 'never', how: 'gzip'},
];

/** Says nothing more, so that something else can happen meanwhile. */
export const stalls: readonly Mishap[] = moments.map(at => ({at, how: 'stalls'}));

/** Models for all endpoints. */
export const faultFiles = ['tiny-count-F16.gguf', 'tiny-embed-F16.gguf', 'tiny-rerank-F16.gguf'] as const;

/** As many slots as there are cases that are stuck at once. */
export const faultSlots = {HEARSAY_SLOTS: '160'} as const;

/** What the engine says up to each moment. */
const piecesBy: Readonly<Record<Mishap['at'], readonly string[]>> = {
  'before headers': [],
  'after headers': [],
  'mid-token': ['one '],
  'before the end mark': ['one ', 'two ', 'three '],
  never: ['one ', 'two ', 'three '],
};

/** Every endpoint, streamed where it can be and whole, at each place, with each mishap. */
export function faultCases(
  endpoints: readonly FaultEndpoint[],
  mishaps: readonly Mishap[],
  places: readonly Place[],
): readonly FaultCase[] {
  return endpoints.flatMap(endpoint =>
    (endpoint.stream ? [true, false] : [false]).flatMap(isStream =>
      places.flatMap(place =>
        mishaps.map(mishap => ({
          endpoint,
          mishap: {...mishap, id: randomUUID()},
          isStream,
          place,
          label: `${endpoint.path}, ${place}, ${isStream ? 'stream' : 'whole'}, ${mishap.how} ${mishap.at}`,
        })),
      ),
    ),
  );
}

export function bodyOf({endpoint, mishap, isStream}: FaultCase): string {
  const {model = 'tiny-count-F16', body} = endpoint;
  return JSON.stringify({model, ...body(JSON.stringify(mishap), isStream)});
}

/** What its client has seen of the answer by then, so that the rest of it can only be an error at the end. */
export function piecesSeen({mishap, isStream}: FaultCase): readonly string[] {
  return isStream && mishap.how !== 'gzip' ? piecesBy[mishap.at] : [];
}

export function piecesIn(text: string): readonly string[] {
  return [...text.matchAll(/one |two |three /gu)].map(([piece]) => piece);
}
