import {candidatesFor} from './candidates.ts';
import type {Question, Reach, SelfFacts} from './candidates.ts';
import type {Asked} from './cost.ts';
import type {Digest, NodeId} from './ids.ts';
import type {ModelFacts} from './model.ts';
import {weigh} from './rank.ts';
import type {Decision} from './rank.ts';
import type {KnownNode, View} from './view.ts';

/** Everything that a choice of node depends on. Kept in the journal, so that it can be made again (law 9). */
export interface DecisionFacts {
  readonly asked: Asked;
  readonly question: Question;
  readonly self: SelfFacts;
  readonly nodes: View['nodes'];
  readonly reach: ReadonlyMap<NodeId, Reach>;
}

/** Pure: whom to ask; the same facts always give the same decision. */
export function decide(facts: DecisionFacts): Decision {
  const {question, reach} = facts;
  const decided = weighWith(facts, reach);
  if (decided.best !== undefined || ![...reach.values()].some(isQuarantined(question.nowMs))) return decided;
  // Nobody else is left: a node in quarantine is probed, not banned.
  return weighWith(facts, new Map([...reach].map(([node, way]) => [node, forgiven(way)])));
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

function weighWith({asked, question, self, nodes}: DecisionFacts, reach: DecisionFacts['reach']): Decision {
  return weigh(candidatesFor(question, self, {nodes, stamps: new Map()}, reach), asked);
}

function isQuarantined(nowMs: number): (reach: Reach) => boolean {
  return ({quarantinedUntilMs}) => quarantinedUntilMs > nowMs;
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
