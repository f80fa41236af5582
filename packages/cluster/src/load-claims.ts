import {automatic, newRequestId, timeLimit} from '@hearsay/core';
import type {
  Busy,
  Digest,
  EngineBeat,
  EngineHost,
  Environment,
  KnownNode,
  Lease,
  Mesh,
  ModelStore,
  NodeId,
} from '@hearsay/core';
import type {Refusal, SignedRecord, Worker, WorkRequest} from '@hearsay/core';
import type {ViewKeeper} from './view-keeper.ts';

/** A peer that does not say within this time whether it loads the model is taken for one that does not. */
const answerMsMax = 1_500;

/** Times that a node which stood back asks again before it loads after all: the one before it may have failed. */
const roundsMax = 10;

/** Whoever loads it tells its true wait, which is shorter: so requests that have to wait do so there. */
const retryMsElsewhere = 60_000;

export interface ClaimDeps extends Pick<Environment, 'clock' | 'random'> {
  readonly mesh: Pick<Mesh, 'self' | 'worker'>;
  readonly engines: Pick<EngineHost, 'engines'>;
  readonly models: Pick<ModelStore, 'find'>;
  readonly keeper: Pick<ViewKeeper, 'view' | 'reach'>;
  /** This node's newest record. */
  readonly fresh: () => Promise<SignedRecord>;
}

interface Claim {
  /** Still asking, so that a peer with a lower id may go first. */
  isOpen: boolean;
  /** Peers that go first, and have to be asked what came of it. */
  readonly ahead: Set<NodeId>;
  readonly outcome: Promise<Outcome>;
  /** The engine has been asked for, or will not be. */
  readonly settled: PromiseWithResolvers<void>;
}

type Outcome = {readonly kind: 'mine'} | {readonly kind: 'theirs'; readonly record: SignedRecord | undefined};

/**
 * Sees to it that a model which nobody has loaded is loaded once, though requests for it come in through several nodes
 * at the same time (R91). Before the first load a node asks the others that store it. Of two that ask each other the
 * one with the lower id goes first: the other answers no and stands back, while the first lets the second wait for its
 * decision, so that waits never form a circle.
 */
export class LoadClaims {
  readonly #deps: ClaimDeps;
  readonly #claims = new Map<Digest, Claim>();

  constructor(deps: ClaimDeps) {
    this.#deps = deps;
  }

  /** The worker, which asks the others before it loads; not for a pinned or preferred node, nor when it must wait. */
  around(local: Worker): Worker {
    return {
      node: local.node,
      offer: async (request, signal) => {
        const digest = request.digests.find(wanted => this.#deps.models.find(wanted) !== undefined);
        const isFree = request.policy.placement.kind === 'auto' && !request.force;
        if (digest === undefined || !isFree || this.#isHere(digest)) return local.offer(request, signal);
        const holders = this.#holders(digest);
        const engineOf = ({beat}: KnownNode): EngineBeat | undefined =>
          beat.engines.find(engine => engine.digest === digest);
        const loader = holders.find(known => engineOf(known)?.readiness === 'loading');
        if (loader !== undefined) return elsewhere(loader.signed);
        // Where it is ready already, the asker knows that and wants a second one.
        const isFirst = holders.length > 0 && !holders.some(known => engineOf(known) !== undefined);
        return isFirst || this.#claims.has(digest)
          ? this.#offer(local, request, digest, signal)
          : local.offer(request, signal);
      },
    };
  }

  /** What a peer is told that wants to load the model: busy when it is or will be here, else a refusal. */
  async judge(digest: Digest, from: NodeId): Promise<Busy | Refusal> {
    const {clock, fresh, mesh} = this.#deps;
    const claim = this.#claims.get(digest);
    if (claim?.isOpen === true && from < mesh.self && !this.#isHere(digest)) {
      claim.ahead.add(from);
      return notHere;
    }
    if (claim !== undefined) await Promise.race([claim.settled.promise, clock.sleep(answerMsMax)]);
    return this.#isHere(digest) ? elsewhere(await fresh()) : notHere;
  }

  /** Peers that can be reached and store the model. */
  #holders(digest: Digest): readonly KnownNode[] {
    const {keeper} = this.#deps;
    const reach = keeper.reach();
    return [...keeper.view().nodes.values()].filter(
      ({beat, inventory}) => reach.has(beat.node) && inventory?.models.some(model => model.digest === digest),
    );
  }

  /** Loaded or loading on this node; never from gossip. */
  #isHere(digest: Digest): boolean {
    const key = this.#deps.models.find(digest)?.key;
    return this.#deps.engines
      .engines()
      .some(engine => engine.key === key && (engine.state === 'ready' || engine.state === 'starting'));
  }

  async #offer(
    local: Worker,
    request: WorkRequest,
    digest: Digest,
    signal: AbortSignal,
  ): Promise<Lease | Busy | Refusal> {
    const known = this.#claims.get(digest);
    const claim = known ?? this.#begin(digest);
    try {
      const outcome = await claim.outcome;
      if (outcome.kind === 'theirs') return elsewhere(outcome.record);
      if (known !== undefined) await claim.settled.promise;
      return await local.offer(request, signal);
    } finally {
      if (known === undefined) {
        this.#claims.delete(digest);
        claim.settled.resolve();
      }
    }
  }

  #begin(digest: Digest): Claim {
    const start = Promise.withResolvers<void>();
    const claim: Claim = {
      isOpen: true,
      ahead: new Set(),
      outcome: start.promise.then(() => this.#decide(claim, digest)),
      settled: Promise.withResolvers(),
    };
    this.#claims.set(digest, claim);
    start.resolve();
    return claim;
  }

  async #decide(claim: Claim, digest: Digest): Promise<Outcome> {
    let asked: readonly NodeId[] = this.#holders(digest).map(({beat}) => beat.node);
    for (let round = 1; ; round += 1) {
      const answers = await Promise.all(asked.map(async node => this.#ask(node, digest)));
      const theirs = answers.find(answer => answer !== undefined);
      if (theirs !== undefined) return {kind: 'theirs', record: theirs.record};
      if (claim.ahead.size === 0 || round === roundsMax) {
        claim.isOpen = false; // in the same step as the last look at who goes first
        return {kind: 'mine'};
      }
      asked = [...claim.ahead];
      claim.ahead.clear();
    }
  }

  /** What the peer answers when it has the model or will have it; undefined: it has not, or cannot be asked. */
  async #ask(node: NodeId, digest: Digest): Promise<Busy | undefined> {
    const {clock, random, mesh} = this.#deps;
    using limit = timeLimit(clock, answerMsMax, 'the answer to a claim');
    try {
      const answer = await mesh.worker(node).offer(claimRequest(newRequestId(random), digest), limit.signal);
      if (answer.kind === 'accepted') await answer[Symbol.asyncDispose](); // it does not know claims
      return answer.kind === 'busy' ? answer : undefined;
    } catch {
      return undefined; // it went away, or is too slow to load anything soon
    }
  }
}

const notHere: Refusal = {kind: 'refused', code: 'digest', message: 'it is neither loaded here nor will it be'};

function elsewhere(record: SignedRecord | undefined): Busy {
  return {kind: 'busy', reason: 'loading', record, retryAfterMs: retryMsElsewhere};
}

function claimRequest(request: WorkRequest['request'], digest: Digest): WorkRequest {
  return {
    request,
    attempt: 1,
    hop: 0,
    digests: [digest],
    endpoint: '/v1/chat/completions',
    needs: [],
    policy: automatic,
    deadlineMs: undefined,
    bodyBytes: 0,
    waitEstimateMs: 0,
    force: false,
    traceparent: undefined,
    claim: true,
  };
}
