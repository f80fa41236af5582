import {isProven} from '@hearsay/core';
import type {Clock, Digest, NodeId, Reach, SelfFacts, View} from '@hearsay/core';
import {here} from './reach.ts';

/** After the second failure in a row; doubles with each further one, as for nodes that do not answer. */
const aloneFirstMs = 500;

/** No engine is left alone for longer, and what it did before that counts no more. */
const aloneMsMax = 60_000;

/** So often an engine that has been loaded anew is tried before its time: one that dies of each request is, too. */
const earlyTrialsMax = 3;

/** All that a large mesh may have loaded at a time; of more the oldest failures are forgotten. */
const enginesMax = 1000;

/** Engines that answer what they are asked with errors, as far as requests of this node tell. */
export interface FailingEngines {
  /** Whatever was under way already when it failed last says nothing new: one death ends all that it had. */
  readonly failed: (node: NodeId, digest: Digest, beganMs: number) => void;
  readonly succeeded: (node: NodeId, digest: Digest) => void;
  /** One request finds out whether it works again; until that is known the others go elsewhere. */
  readonly offered: (node: NodeId, digests: readonly Digest[]) => void;
  /** The connection is gone: whoever comes back is met anew. */
  readonly forget: (node: NodeId) => void;
  /** The ways to all nodes for a request that one of these models may answer. */
  readonly reach: (ways: Ways, digests: readonly Digest[]) => Ways;
}

export interface FailingEnginesDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** What nodes tell of themselves. */
  readonly self: () => Pick<SelfFacts, 'beat' | 'models'>;
  readonly view: () => Pick<View, 'nodes'>;
}

type Ways = ReadonlyMap<NodeId, Reach>;

interface Failures {
  readonly node: NodeId;
  readonly digest: Digest;
  readonly count: number;
  readonly lastMs: number;
  readonly forMs: number;
  /** When it began to be left alone: with its last failure, or with the request that tries it since. */
  readonly aloneSinceMs: number;
  readonly earlyTrials: number;
}

/**
 * An engine that refuses at once would always look free, and so draw every request to itself (R30). One failure may be
 * the fault of the request; an engine that fails the next one too is left alone for a while, for this model only.
 */
export function failingEngines({clock, self, view}: FailingEnginesDeps): FailingEngines {
  const failing = new Map<string, Failures>();
  const keyOf = (node: NodeId, digest: Digest): string => `${node} ${digest}`;

  function known(key: string): Failures | undefined {
    const failures = failing.get(key);
    if (failures && clock.monotonicMs() - failures.lastMs < aloneMsMax) return failures;
    failing.delete(key);
    return undefined;
  }

  /** How what it would run stands, if that has failed more than once. */
  function standingOf(node: NodeId, digests: readonly Digest[]): Standing | undefined {
    const facts = factsOf(node, self(), view(), clock.monotonicMs());
    const digest = facts && firstAccepted(digests, facts);
    const failures = digest === undefined ? undefined : known(keyOf(node, digest));
    if (facts === undefined || failures === undefined || failures.count < 2) return undefined;
    const isLoadedAnew = readyAtMs(failures.digest, facts) > failures.aloneSinceMs;
    const isEarly = isLoadedAnew && failures.earlyTrials < earlyTrialsMax;
    return {failures, isEarly, untilMs: isEarly ? -Infinity : failures.aloneSinceMs + failures.forMs};
  }

  return {
    failed(node, digest, beganMs) {
      const key = keyOf(node, digest);
      const before = known(key);
      if (before && beganMs < before.lastMs) return;
      const lastMs = clock.monotonicMs();
      const count = (before?.count ?? 0) + 1;
      const forMs = count < 2 ? 0 : Math.min(aloneMsMax, aloneFirstMs * 2 ** (count - 2));
      const earlyTrials = before?.earlyTrials ?? 0;
      failing.delete(key); // so that the newest stand last
      failing.set(key, {node, digest, count, lastMs, forMs, aloneSinceMs: lastMs, earlyTrials});
      const [oldest] = failing.keys();
      if (oldest !== undefined && failing.size > enginesMax) failing.delete(oldest);
    },
    succeeded(node, digest) {
      if (failing.size > 0) failing.delete(keyOf(node, digest));
    },
    offered(node, digests) {
      const standing = failing.size === 0 ? undefined : standingOf(node, digests);
      const nowMs = clock.monotonicMs();
      if (standing === undefined || standing.untilMs > nowMs) return;
      const {failures, isEarly} = standing;
      const earlyTrials = failures.earlyTrials + (isEarly ? 1 : 0);
      failing.set(keyOf(node, failures.digest), {...failures, aloneSinceMs: nowMs, earlyTrials});
    },
    forget(node) {
      for (const [key, failures] of failing) if (failures.node === node) failing.delete(key);
    },
    reach(ways, digests) {
      if (failing.size === 0) return ways;
      const reach = new Map(ways);
      for (const node of new Set([...failing.values()].map(failures => failures.node))) {
        const way = reach.get(node) ?? (node === self().beat.node ? here : undefined);
        const standing = way && standingOf(node, digests);
        if (!standing) continue;
        reach.set(node, {
          ...way,
          quarantinedUntilMs: Math.max(way.quarantinedUntilMs, standing.untilMs),
          failures: way.failures + standing.failures.count - 1,
        });
      }
      return reach;
    },
  };
}

interface Standing {
  readonly failures: Failures;
  readonly untilMs: number;
  /** It has been loaded anew since, so that it may be tried before its time. */
  readonly isEarly: boolean;
}

interface Facts extends Pick<SelfFacts, 'beat' | 'models'> {
  readonly madeAtMs: number;
  readonly isSelf: boolean;
}

function factsOf(
  node: NodeId,
  self: ReturnType<FailingEnginesDeps['self']>,
  {nodes}: Pick<View, 'nodes'>,
  nowMs: number,
): Facts | undefined {
  if (node === self.beat.node) return {...self, madeAtMs: nowMs, isSelf: true};
  const known = nodes.get(node);
  return known && {...known, models: known.inventory?.models ?? [], isSelf: false};
}

function firstAccepted(digests: readonly Digest[], {models, isSelf}: Facts): Digest | undefined {
  return digests.find(digest => (isSelf || isProven(digest)) && models.some(model => model.digest === digest));
}

/** On this node's clock. Age 0 may stand for an age that nobody knows, as of external engines. */
function readyAtMs(digest: Digest, {beat, madeAtMs}: Facts): number {
  const engine = beat.engines.find(each => each.digest === digest);
  if (engine?.readiness !== 'ready' || engine.ageSeconds === 0) return -Infinity;
  return madeAtMs - engine.ageSeconds * 1000;
}
