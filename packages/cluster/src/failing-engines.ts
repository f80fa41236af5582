import type {Clock, Digest, NodeId, Reach} from '@hearsay/core';
import {unharmed} from './reach.ts';

/** After the second failure in a row; doubles with each further one, as for nodes that do not answer. */
const aloneFirstMs = 500;

/** No engine is left alone for longer, and what it did before that counts no more. */
const aloneMsMax = 60_000;

/** All that a large mesh may have loaded at a time; of more the oldest failures are forgotten. */
const enginesMax = 1000;

/** Engines that answer what they are asked with errors, as far as requests of this node tell. */
export interface FailingEngines {
  readonly failed: (node: NodeId, digest: Digest) => void;
  readonly succeeded: (node: NodeId, digest: Digest) => void;
  /** The ways to all nodes for a request that one of these models may answer. */
  readonly reach: (ways: Ways, self: NodeId, digests: readonly Digest[]) => Ways;
}

type Ways = ReadonlyMap<NodeId, Reach>;

interface Failures {
  readonly node: NodeId;
  readonly digest: Digest;
  readonly count: number;
  readonly untilMs: number;
  readonly lastMs: number;
}

/**
 * An engine that refuses at once would always look free, and so draw every request to itself (R30). One failure may be
 * the fault of the request; an engine that fails the next one too is left alone for a while, for this model only.
 */
export function failingEngines(clock: Pick<Clock, 'monotonicMs'>): FailingEngines {
  const failing = new Map<string, Failures>();
  const keyOf = (node: NodeId, digest: Digest): string => `${node} ${digest}`;

  function known(key: string): Failures | undefined {
    const failures = failing.get(key);
    if (failures && clock.monotonicMs() - failures.lastMs < aloneMsMax) return failures;
    failing.delete(key);
    return undefined;
  }

  return {
    failed(node, digest) {
      const key = keyOf(node, digest);
      const lastMs = clock.monotonicMs();
      const count = (known(key)?.count ?? 0) + 1;
      const forMs = count < 2 ? 0 : Math.min(aloneMsMax, aloneFirstMs * 2 ** (count - 2));
      failing.delete(key); // so that the newest stand last
      failing.set(key, {node, digest, count, untilMs: lastMs + forMs, lastMs});
      const [oldest] = failing.keys();
      if (oldest !== undefined && failing.size > enginesMax) failing.delete(oldest);
    },
    succeeded(node, digest) {
      if (failing.size > 0) failing.delete(keyOf(node, digest));
    },
    reach(ways, self, digests) {
      if (failing.size === 0) return ways;
      const reach = new Map(ways);
      for (const [key, {node, digest}] of failing) {
        const failures = digests.includes(digest) ? known(key) : undefined;
        const way = reach.get(node) ?? (node === self ? {...unharmed, roundTripMs: 0, relayed: false} : undefined);
        if (!failures || !way || failures.count < 2) continue;
        reach.set(node, {
          ...way,
          quarantinedUntilMs: Math.max(way.quarantinedUntilMs, failures.untilMs),
          failures: way.failures + failures.count - 1,
        });
      }
      return reach;
    },
  };
}
