import {decide} from '@hearsay/core';
import type {
  Asked,
  ClientRequest,
  Clock,
  Decision,
  DecisionFacts,
  Digest,
  Mesh,
  MeshRole,
  NodeId,
  PatienceLimits,
  Question,
  RequestEvent,
  Spread,
} from '@hearsay/core';
import type {SelfFacts, View, Worker} from '@hearsay/core';
import type {Affinity, Hits} from './affinity.ts';
import type {Announcer} from './announcer.ts';
import type {Answered, DispatchDeps, Started} from './dispatch.ts';
import type {FailingEngines} from './failing-engines.ts';
import type {Offering} from './own-offers.ts';
import {prefixChain} from './prefix-chain.ts';
import {TimingsReader} from './read-timings.ts';
import type {ViewKeeper} from './view-keeper.ts';

export interface ChooserConfig extends PatienceLimits {
  /** `use`: runs nothing for others; `serve`: asks nobody. Default: both. */
  readonly role?: MeshRole;
  readonly spread: Spread;
  /** All nodes of a mesh hash prompts with the same key, others with another; it may change as nodes join or leave. */
  readonly affinityKey: () => string;
}

export interface ChooserDeps {
  readonly mesh: Pick<Mesh, 'self' | 'worker'>;
  readonly clock: Clock;
  readonly keeper: ViewKeeper;
  readonly announcer: Pick<Announcer, 'self'>;
  readonly affinity: Affinity;
  readonly failing: FailingEngines;
  /** This machine. */
  readonly local: Worker;
}

/** What of a request its node is chosen by. */
export interface Wanted extends Pick<ClientRequest, 'id' | 'needs' | 'policy' | 'hints' | 'caller'> {
  readonly promptBytes: number;
  /** With all that is no text; absent: there is nothing else. */
  readonly bodyBytes?: number;
}

/** What one request needs to find its node, and what is learned from how it went. */
export interface Choice extends DispatchDeps {
  /** Its first bytes have come. */
  readonly started: (started: Started) => void;
}

/** The choice of a node for one request: everything that ranking goes by, from its one owner each. */
export function chooseNode(
  request: Wanted,
  config: ChooserConfig,
  deps: ChooserDeps,
  note: (event: RequestEvent) => void,
): Choice {
  const {affinity, announcer, clock, failing, keeper, local, mesh} = deps;
  const {caller, hints, needs, policy} = request;
  const allowedNodes = caller?.rights.nodes;
  const asksNobody = config.role === 'serve';
  // Alone there is nothing to choose, so nothing is hashed.
  const isAlone = keeper.view().nodes.size === 0 || config.spread === 'off';
  const chain = isAlone || !hints ? undefined : prefixChain(config.affinityKey(), hints.conversation);
  const asked: Asked = {
    request: request.id,
    spread: config.spread,
    promptBytes: request.promptBytes,
    bodyBytes: request.bodyBytes,
    maxTokens: hints?.maxTokens,
  };
  let hits: Hits = noHits;
  let offering: Offering | undefined;

  function question(digests: readonly Digest[], answered: Answered, self: SelfFacts, view: View): Question {
    const nowMs = clock.monotonicMs();
    hits = chain ? affinity.hits({chain, session: hints?.session, digests}, self.beat, view, nowMs) : noHits;
    const bytes = new Map<NodeId, number>();
    for (const [node, share] of hits) bytes.set(node, Math.round(share * affinity.trust(node) * asked.promptBytes));
    return {digests, needs, policy, ...answered, hits: bytes, nowMs, allowedNodes, asksNobody};
  }

  return {
    rank(digests, answered, isNoted): Decision {
      const view = keeper.view();
      const reach = failing.reach(keeper.reach(), digests);
      const self = announcer.self();
      const asking = question(digests, answered, self, view);
      const facts: DecisionFacts = {asked, question: asking, self, nodes: view.nodes, reach};
      const decision = decide(facts);
      if (isNoted !== 'unnoted') note(decidedEvent(facts, decision));
      return decision;
    },
    worker: node =>
      watched(node === mesh.self ? local : counted(mesh.worker(node), keeper, made => (offering = made)), failing),
    prefix: chain?.ends,
    heard: keeper.heard,
    failed: keeper.failed,
    succeeded(node, digest) {
      keeper.succeeded(node);
      failing.succeeded(node, digest);
    },
    engineFailed: failing.failed,
    clock,
    patience: config,
    note,
    started({node: {node}, digest, body}) {
      const isOver = node === mesh.self ? undefined : offering?.over;
      body.onWhole = isOver;
      if (!chain) return;
      const share = hits.get(node) ?? 0;
      affinity.sent(node, digest, chain, hints?.session, clock.monotonicMs());
      if (share === 0) return;
      const reader = new TimingsReader();
      body.onBytes = bytes => reader.read(bytes);
      body.onWhole = () => {
        isOver?.();
        const timings = reader.timings();
        if (!timings) return;
        const {cachedTokens, promptTokens} = timings;
        affinity.learned(node, share * (cachedTokens + promptTokens), cachedTokens);
      };
    },
  };
}

/** The explanation is only made when the journal writes it, which is after the request has gone out. */
function decidedEvent(facts: DecisionFacts, decision: Decision): RequestEvent {
  return {
    kind: 'decided',
    facts,
    get ranked() {
      return decision.ranked;
    },
  };
}

const noHits: Hits = new Map();

/** An engine that has failed lately is tried by one request at a time. */
function watched(worker: Worker, failing: FailingEngines): Worker {
  return {
    node: worker.node,
    async offer(request, signal) {
      failing.offered(worker.node, request.digests);
      return worker.offer(request, signal);
    },
  };
}

/** A peer whose unanswered offers count as its load: its records cannot know of them yet. */
function counted(worker: Worker, keeper: ViewKeeper, made: (offering: Offering) => void): Worker {
  return {
    node: worker.node,
    async offer(request, signal) {
      using offering = keeper.offering(worker.node);
      made(offering);
      const answer = await worker.offer(request, signal);
      // Before it stops counting, so that no request in between sees the node without it.
      if (answer.kind === 'accepted') offering.untilRecord(answer.loadSeq);
      else if (answer.kind === 'busy') keeper.heard(answer.record);
      return answer;
    },
  };
}
