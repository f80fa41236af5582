import type {Link, NodeId, Reach} from '@hearsay/core';

/** Pure: how others are reached, as far as the links tell: the same for many requests. */
export function waysOf(links: ReadonlyMap<NodeId, Link>): ReadonlyMap<NodeId, Reach> {
  const ways = new Map<NodeId, Reach>();
  for (const {node, admitted, path, roundTripMs} of links.values()) {
    if (admitted) ways.set(node, {...unharmed, roundTripMs, relayed: path === 'relayed'});
  }
  return ways;
}

/** Nothing has come of any offer yet. */
const unharmed: Pick<Reach, 'quarantinedUntilMs' | 'failures' | 'ownOffers'> = {
  quarantinedUntilMs: -Infinity,
  failures: 0,
  ownOffers: 0,
};

/** This node itself, which has no way to go. */
export const here: Reach = {...unharmed, roundTripMs: 0, relayed: false};

interface OwnExperience {
  readonly failures: ReadonlyMap<NodeId, {count: number; untilMs: number}>;
  readonly offers: ReadonlyMap<NodeId, ReadonlySet<unknown>>;
}

/** Pure: with what this node's own offers have come to. It is itself among them only while its own engines have failed. */
export function withExperience(
  ways: ReadonlyMap<NodeId, Reach>,
  self: NodeId,
  {failures, offers}: OwnExperience,
): ReadonlyMap<NodeId, Reach> {
  const reach = new Map(ways);
  for (const [node, {count, untilMs}] of failures) {
    const way = node === self ? here : reach.get(node);
    if (way) reach.set(node, {...way, quarantinedUntilMs: untilMs, failures: count});
  }
  for (const [node, own] of offers) {
    const way = reach.get(node);
    if (way && own.size > 0) reach.set(node, {...way, ownOffers: own.size});
  }
  return reach;
}
