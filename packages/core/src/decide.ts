import {candidatesFor} from './candidates.ts';
import type {Question, Reach, SelfFacts} from './candidates.ts';
import type {Asked} from './cost.ts';
import type {Digest, NodeId} from './ids.ts';
import type {ModelFacts} from './model.ts';
import {rank} from './rank.ts';
import type {Ranked} from './rank.ts';
import type {KnownNode, View} from './view.ts';

/** Everything that a choice of node depends on. Kept in the journal, so that it can be made again (law 9). */
export interface DecisionFacts {
  readonly asked: Asked;
  readonly question: Question;
  readonly self: SelfFacts;
  readonly nodes: View['nodes'];
  readonly reach: ReadonlyMap<NodeId, Reach>;
}

/** Pure: every node, best first, each with its place and the reason for it. */
export function decide(facts: DecisionFacts): readonly Ranked[] {
  const ranked = rankWith(facts, facts.reach);
  if (ranked[0]?.place !== undefined || !ranked.some(({exclusion}) => exclusion === 'quarantined')) return ranked;
  // Nobody else is left: a node in quarantine is probed, not banned.
  return rankWith(facts, new Map([...facts.reach].map(([node, reach]) => [node, forgiven(reach)])));
}

/** Pure: the facts without what cannot change the decision, which is most of an inventory. */
export function compactFacts(facts: DecisionFacts): DecisionFacts {
  const {digests} = facts.question;
  const nodes = [...facts.nodes].map(([node, known]): readonly [NodeId, KnownNode] => [
    node,
    compactNode(known, digests),
  ]);
  return {
    ...facts,
    self: {...facts.self, models: accepted(facts.self.models, digests)},
    nodes: new Map(nodes),
  };
}

function rankWith({asked, question, self, nodes}: DecisionFacts, reach: DecisionFacts['reach']): readonly Ranked[] {
  return rank(candidatesFor(question, self, {nodes, stamps: new Map()}, reach), asked);
}

function forgiven(reach: Reach): Reach {
  return {...reach, quarantinedUntilMs: -Infinity};
}

function compactNode({beat, madeAtMs, inventory}: KnownNode, digests: readonly Digest[]): KnownNode {
  return {
    beat,
    signed: {node: beat.node, payload: new Uint8Array(), signature: new Uint8Array()},
    madeAtMs,
    inventory: inventory && {...inventory, models: accepted(inventory.models, digests)},
  };
}

/** What a node has measured of its other models tells what to expect of one that it has not run yet. */
function accepted(models: readonly ModelFacts[], digests: readonly Digest[]): readonly ModelFacts[] {
  return models.filter(({digest, learned}) => learned !== undefined || digests.includes(digest));
}
