import {isNodeId, isRequestId} from '@hearsay/core';
import type {NodeId, Outcome, Ranked, ReplayedDecision, RequestId, RequestSummary, Usage} from '@hearsay/core';
import {z} from 'zod';

/** What the admin API tells of requests, as far as people are shown it. */

/** One line of `hearsay requests`. */
export interface SummaryRow extends Omit<RequestSummary, 'code' | 'policyFrom' | 'endpoint' | 'node' | 'digest'> {
  readonly code: string | undefined;
  readonly policyFrom: string | undefined;
  readonly endpoint: string;
  readonly digest: string | undefined;
}

type ShownOfRanked =
  | 'node'
  | 'name'
  | 'self'
  | 'place'
  | 'reason'
  | 'preferred'
  | 'freeSlots'
  | 'queued'
  | 'waitMs'
  | 'roomBytes';

/** A node as it stood for a request. */
export interface RankedRow extends Pick<Ranked, ShownOfRanked> {
  readonly roundTripMs: number | undefined;
  readonly exclusion: string | undefined;
  readonly state: string;
  /** What it would cost in seconds, where the daemon ranks by that. */
  readonly cost: CostRow | undefined;
}

export interface CostRow {
  readonly seconds: number;
  readonly terms: Readonly<Record<string, number>>;
  /** For each term `measured` or `guess`. */
  readonly sources: Readonly<Record<string, string>>;
}

export type EventRow =
  | {readonly kind: 'arrived'}
  | {readonly kind: 'planned'; readonly model: string; readonly policy: string; readonly policyFrom: string}
  | {readonly kind: 'decided'; readonly ranked: readonly RankedRow[]}
  | {
      readonly kind: 'offered';
      readonly attempt: number;
      readonly nodeName: string;
      readonly force: boolean;
      readonly estimateMs: number;
    }
  | {readonly kind: 'queued'; readonly position: number; readonly waitMs: number}
  | {readonly kind: 'accepted'; readonly attempt: number}
  | {readonly kind: 'busy'; readonly attempt: number; readonly reason: string; readonly retryAfterMs: number}
  | {readonly kind: 'refused' | 'broke'; readonly attempt: number; readonly message: string}
  | {readonly kind: 'leaving'; readonly reason: string; readonly services: readonly string[]}
  | {readonly kind: 'started'; readonly attempt: number; readonly nodeName: string; readonly status: number}
  | {readonly kind: 'ended'; readonly outcome: Outcome};

export interface WhyAnswer {
  readonly summary: SummaryRow;
  readonly steps: readonly {readonly sinceMs: number; readonly event: EventRow}[];
  readonly replay: readonly ReplayedDecision[];
}

export interface RouteAnswer {
  readonly asked: string;
  readonly model: string;
  readonly digests: readonly string[];
  readonly policy: string;
  readonly policyFrom: string;
  readonly promptBytes: number;
  readonly ranked: readonly RankedRow[];
  readonly hosted: readonly {readonly name: string; readonly waitMsMax: number}[];
}

const usage: z.ZodType<Usage> = z.object({
  promptTokens: absent(z.number()),
  cachedTokens: absent(z.number()),
  outputTokens: absent(z.number()),
  prefillTokensPerSecond: absent(z.number()),
  decodeTokensPerSecond: absent(z.number()),
});

const outcome: z.ZodType<Outcome> = z.enum(['finished', 'failed', 'refused', 'cancelled', 'interrupted']);
const nodeId = z.custom<NodeId>(isNodeId);

const summary: z.ZodType<SummaryRow> = z.object({
  id: z.custom<RequestId>(isRequestId),
  role: z.enum(['entry', 'worker']),
  atMs: z.number(),
  outcome: absent(outcome),
  code: absent(z.string()),
  message: absent(z.string()),
  asked: z.string(),
  endpoint: z.string(),
  policy: z.string(),
  policyFrom: absent(z.string()),
  bodyBytes: z.number(),
  caller: absent(z.string()),
  from: absent(nodeId),
  nodeName: absent(z.string()),
  digest: absent(z.string()),
  model: absent(z.string()),
  status: absent(z.number()),
  attempts: z.number(),
  estimateMs: absent(z.number()),
  position: absent(z.number()),
  firstByteMs: absent(z.number()),
  totalMs: absent(z.number()),
  usage: absent(usage),
  change: z.number(),
});

export const requestsSchema: z.ZodType<{readonly requests: readonly SummaryRow[]}> = z.object({
  requests: z.array(summary),
});

const ranked: z.ZodType<RankedRow> = z.object({
  node: nodeId,
  name: z.string(),
  self: z.boolean(),
  place: absent(z.number()),
  exclusion: absent(z.string()),
  reason: z.string(),
  state: z.string(),
  preferred: z.boolean(),
  freeSlots: z.number(),
  queued: z.number(),
  waitMs: z.number(),
  roomBytes: z.number(),
  roundTripMs: absent(z.number()),
  cost: absent(
    z.object({
      seconds: z.number(),
      terms: z.record(z.string(), z.number()),
      sources: z.record(z.string(), z.string()),
    }),
  ),
});

const attempt = z.number();
const event: z.ZodType<EventRow> = z.discriminatedUnion('kind', [
  z.object({kind: z.literal('arrived')}),
  z.object({kind: z.literal('planned'), model: z.string(), policy: z.string(), policyFrom: z.string()}),
  z.object({kind: z.literal('decided'), ranked: z.array(ranked)}),
  z.object({kind: z.literal('offered'), attempt, nodeName: z.string(), force: z.boolean(), estimateMs: z.number()}),
  z.object({kind: z.literal('queued'), position: z.number(), waitMs: z.number()}),
  z.object({kind: z.literal('accepted'), attempt}),
  z.object({kind: z.literal('busy'), attempt, reason: z.string(), retryAfterMs: z.number()}),
  z.object({kind: z.enum(['refused', 'broke']), attempt, message: z.string()}),
  z.object({kind: z.literal('leaving'), reason: z.string(), services: z.array(z.string())}),
  z.object({kind: z.literal('started'), attempt, nodeName: z.string(), status: z.number()}),
  z.object({kind: z.literal('ended'), outcome}),
]);

const replayed: z.ZodType<ReplayedDecision> = z.object({
  sinceMs: z.number(),
  agrees: z.boolean(),
  recorded: absent(z.string()),
  again: absent(z.string()),
  differences: z.array(z.string()),
});

export const whySchema: z.ZodType<WhyAnswer> = z.object({
  summary,
  steps: z.array(z.object({sinceMs: z.number(), event})),
  replay: z.array(replayed),
});

export const routeSchema: z.ZodType<RouteAnswer> = z.object({
  asked: z.string(),
  model: z.string(),
  digests: z.array(z.string()),
  policy: z.string(),
  policyFrom: z.string(),
  promptBytes: z.number(),
  ranked: z.array(ranked),
  hosted: z.array(z.object({name: z.string(), waitMsMax: z.number()})),
});

/** JSON has no undefined: a missing field means the same. */
function absent<T>(schema: z.ZodType<T>) {
  return schema.nullish().transform(value => value ?? undefined);
}
