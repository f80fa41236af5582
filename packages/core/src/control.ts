/**
 * What one node may ask another about its engines, and how it travels: one message there, one back, as CBOR maps with
 * short keys (docs/protocol.md). The owner decides; a wish is not an order.
 */
import {encode} from 'cborg';
import {z} from 'zod';
import type {EngineStateName} from './engine-port.ts';
import type {Digest} from './ids.ts';
import {digestBytes, digestToBytes, parse, text, whole, wireVersion} from './wire.ts';

export type ControlRequest =
  | {
      readonly kind: 'load';
      readonly digest: Digest;
      /** Context of one slot in tokens, and slots; undefined: as the owner has set. */
      readonly context: number | undefined;
      readonly slots: number | undefined;
      /** Stay loaded for as long as the owner allows. */
      readonly keep: boolean;
    }
  | {readonly kind: 'stop'; readonly digest: Digest}
  | {readonly kind: 'show'; readonly digest: Digest}
  /** Lines with a number of `after` or more. */
  | {readonly kind: 'logs'; readonly digest: Digest; readonly after: number};

/** One engine as its owner shows it. */
export interface EngineDetails {
  readonly state: EngineStateName;
  readonly slots: number;
  readonly busy: number;
  readonly queued: number;
  readonly context: number;
  /** While it loads: share of the file that is read, 0…1, where llama-server tells, and the time that is left. */
  readonly loadedShare: number | undefined;
  readonly remainingMs: number | undefined;
  /** Seconds since it became ready, and until it is unloaded; undefined: it is not ready, or it stays. */
  readonly readySeconds: number | undefined;
  readonly untilSeconds: number | undefined;
  readonly failure: string | undefined;
}

/** Lines of an engine's log. Asking again with `next` continues; a number above the first line's means a gap. */
export interface LogPage {
  readonly lines: readonly string[];
  /** Number of the first of these lines, counted from the engine's first start. */
  readonly first: number;
  readonly next: number;
}

export type ControlAnswer =
  /** The engine as it is after the wish; undefined when none runs. */
  | {readonly kind: 'engine'; readonly engine: EngineDetails | undefined}
  | {readonly kind: 'logs'; readonly page: LogPage}
  | {readonly kind: 'refused'; readonly message: string};

/** Largest message: a page of a log. */
export const controlBytesMax: number = 64 * 1024;

/** Most lines of a page, and longest line: together they stay below the largest message. */
export const logPageLinesMax = 100;
export const logLineLengthMax = 500;

/** Longest reason of a failure that is told: twenty lines of a log. */
const failureLengthMax = 12_000;

const limit = {max: controlBytesMax, what: 'control message', code: 'PEER_FAILED'} as const;

const request = z
  .discriminatedUnion('k', [
    z.object({
      v: z.literal(wireVersion),
      k: z.literal('load'),
      d: digestBytes,
      c: whole.positive().optional(),
      s: whole.positive().optional(),
      f: z.boolean(),
    }),
    z.object({v: z.literal(wireVersion), k: z.literal('stop'), d: digestBytes}),
    z.object({v: z.literal(wireVersion), k: z.literal('show'), d: digestBytes}),
    z.object({v: z.literal(wireVersion), k: z.literal('logs'), d: digestBytes, a: whole}),
  ])
  .transform((given): ControlRequest => {
    switch (given.k) {
      case 'load':
        return {kind: 'load', digest: given.d, context: given.c, slots: given.s, keep: given.f};
      case 'stop':
        return {kind: 'stop', digest: given.d};
      case 'show':
        return {kind: 'show', digest: given.d};
      case 'logs':
        return {kind: 'logs', digest: given.d, after: given.a};
    }
  });

export function encodeControl(given: ControlRequest): Uint8Array {
  const head = {v: wireVersion, k: given.kind, d: digestToBytes(given.digest)};
  switch (given.kind) {
    case 'load':
      return encode({...head, ...present({c: given.context, s: given.slots}), f: given.keep});
    case 'stop':
    case 'show':
      return encode(head);
    case 'logs':
      return encode({...head, a: given.after});
  }
}

export function decodeControl(data: Uint8Array): ControlRequest {
  return parse(request, data, limit);
}

const states = ['stopped', 'starting', 'ready', 'draining', 'stopping', 'backing off', 'broken'] as const;

const details = z
  .object({
    s: z.enum(states),
    n: whole,
    b: whole,
    q: whole,
    c: whole,
    p: whole.max(1000).optional(),
    r: whole.optional(),
    a: whole.optional(),
    u: whole.optional(),
    f: text(failureLengthMax).optional(),
  })
  .transform((e): EngineDetails => ({
    state: e.s,
    slots: e.n,
    busy: e.b,
    queued: e.q,
    context: e.c,
    loadedShare: e.p === undefined ? undefined : e.p / 1000,
    remainingMs: e.r,
    readySeconds: e.a,
    untilSeconds: e.u,
    failure: e.f,
  }));

const answer = z
  .discriminatedUnion('k', [
    z.object({k: z.literal('engine'), e: details.optional()}),
    z.object({k: z.literal('logs'), l: z.array(text(logLineLengthMax)).max(logPageLinesMax), o: whole, x: whole}),
    z.object({k: z.literal('refuse'), m: text(2000)}),
  ])
  .transform((given): ControlAnswer => {
    switch (given.k) {
      case 'engine':
        return {kind: 'engine', engine: given.e};
      case 'logs':
        return {kind: 'logs', page: {lines: given.l, first: given.o, next: given.x}};
      case 'refuse':
        return {kind: 'refused', message: given.m};
    }
  });

export function encodeControlAnswer(given: ControlAnswer): Uint8Array {
  switch (given.kind) {
    case 'engine':
      return encode({k: 'engine', ...(given.engine === undefined ? {} : {e: encodeDetails(given.engine)})});
    case 'logs':
      return encode({k: 'logs', l: given.page.lines, o: given.page.first, x: given.page.next});
    case 'refused':
      return encode({k: 'refuse', m: given.message.slice(0, 2000)});
  }
}

export function decodeControlAnswer(data: Uint8Array): ControlAnswer {
  return parse(answer, data, limit);
}

function encodeDetails(engine: EngineDetails): object {
  const {state, slots, busy, queued, context, loadedShare, remainingMs, readySeconds, untilSeconds, failure} = engine;
  return {
    s: state,
    n: slots,
    b: busy,
    q: queued,
    c: context,
    ...present({
      p: loadedShare === undefined ? undefined : Math.round(loadedShare * 1000),
      r: rounded(remainingMs),
      a: rounded(readySeconds),
      u: rounded(untilSeconds),
      f: failure?.slice(0, failureLengthMax),
    }),
  };
}

function rounded(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.max(0, Math.round(value));
}

function present(fields: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
