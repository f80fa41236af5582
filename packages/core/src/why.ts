import {decide} from './decide.ts';
import {describeError} from './fault.ts';
import type {Digest} from './ids.ts';
import type {JournaledRequest, RequestEvent, RequestSummary} from './journal-port.ts';
import type {Capability} from './model.ts';
import type {Policy, PolicySource} from './policy.ts';
import type {Ranked} from './rank.ts';

/** An event as people are told of it: a decision without the facts that it was made from. */
export type WhyEvent =
  | Exclude<RequestEvent, {readonly kind: 'decided'}>
  | {readonly kind: 'decided'; readonly ranked: readonly Ranked[]};

/** One decision made again from its recorded facts. */
export interface ReplayedDecision {
  readonly sinceMs: number;
  readonly agrees: boolean;
  /** Names of the nodes that were ranked first, then and now; undefined: nobody could be asked. */
  readonly recorded: string | undefined;
  readonly again: string | undefined;
  /** In words, one a node. */
  readonly differences: readonly string[];
}

/** All that is known of one request (law 9). */
export interface WhyReport {
  readonly summary: RequestSummary;
  readonly steps: readonly {readonly sinceMs: number; readonly event: WhyEvent}[];
  readonly replay: readonly ReplayedDecision[];
}

/** A request that is only thought of. */
export interface RouteQuestion {
  readonly model: string;
  readonly needs: readonly Capability[];
  readonly policy: Policy | undefined;
  readonly promptBytes: number;
}

/** Where such a request would go from this node, now. */
export interface RouteReport {
  readonly asked: string;
  readonly model: string;
  readonly digests: readonly Digest[];
  readonly policy: string;
  readonly policyFrom: PolicySource;
  readonly promptBytes: number;
  /** Every node, best first. */
  readonly ranked: readonly Ranked[];
  /** Services that it may leave for when no node can run it, or when the wait for one is longer than this. */
  readonly hosted: readonly {readonly name: string; readonly waitMsMax: number}[];
}

/** Pure: the journal's pages on one request, with every decision made again. */
export function whyReport({summary, events}: JournaledRequest): WhyReport {
  return {
    summary,
    steps: events.map(({sinceMs, event}) => ({
      sinceMs,
      event: event.kind === 'decided' ? {kind: 'decided', ranked: event.ranked} : event,
    })),
    replay: replayDecisions(events),
  };
}

/** Pure: makes every decision again from the facts that were kept with it. */
export function replayDecisions(events: JournaledRequest['events']): readonly ReplayedDecision[] {
  return events.flatMap(({sinceMs, event}) => (event.kind === 'decided' ? [replayDecision(sinceMs, event)] : []));
}

function replayDecision(
  sinceMs: number,
  {facts, ranked}: Extract<RequestEvent, {readonly kind: 'decided'}>,
): ReplayedDecision {
  const recorded = firstName(ranked);
  try {
    const again = decide(facts).ranked;
    const differences = differencesIn(ranked, again);
    return {sinceMs, agrees: differences.length === 0, recorded, again: firstName(again), differences};
  } catch (error) {
    const why = `facts of another version cannot be judged by this one: ${describeError(error)}`;
    return {sinceMs, agrees: false, recorded, again: undefined, differences: [why]};
  }
}

function firstName(ranked: readonly Ranked[]): string | undefined {
  return ranked.find(({place}) => place === 0)?.name;
}

function differencesIn(recorded: readonly Ranked[], again: readonly Ranked[]): readonly string[] {
  const now = new Map(again.map(ranked => [ranked.node, ranked]));
  const differences = recorded.flatMap(before => {
    const after = now.get(before.node);
    const [was, is] = [standing(before), after ? standing(after) : 'not there'];
    return was === is ? [] : [`${before.name} was ${was} and is ${is}`];
  });
  const extra = again.filter(({node}) => !recorded.some(before => before.node === node));
  return [...differences, ...extra.map(({name}) => `${name} was not there`)];
}

function standing({place, reason}: Ranked): string {
  return place === undefined ? `out (${reason})` : `number ${place + 1} (${reason})`;
}
