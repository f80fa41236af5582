import {asFault, Fault, firstByteBudgetMs, reasonOf, untilAborted} from '@hearsay/core';
import type {Busy, ClientRequest, Clock, Decision, Digest, Lease, NodeId, Ranked, Refusal, Worker} from '@hearsay/core';
import type {PatienceLimits, RequestEvent, WorkResponse} from '@hearsay/core';
import {watchFirstByte} from './first-byte-watch.ts';
import {engineFailure, mayBeOfTheRequest} from './engine-failure.ts';
import type {Turn} from './fair-queue.ts';
import {giveUp} from './give-up.ts';
import type {Tried} from './give-up.ts';
import {LeasedBody} from './leased-body.ts';
import {limitWait} from './limit-wait.ts';
import type {WaitLimits} from './limit-wait.ts';
import {expectsLine, slotsOf, standingAt} from './request-line.ts';
import type {RequestLine} from './request-line.ts';
import {tooLong} from './too-long.ts';
import type {TooLong} from './too-long.ts';
import {workRequest} from './work-request.ts';

/** Offers answered with `busy` before the shortest wait is taken as it is (design §4). */
const busyOffersMax = 3;

/** Attempts of one request, over all nodes: more only keeps a client waiting for the same bad news. */
const attemptsMax = 10;

/** Longest reason of a refusal that is kept. */
const reasonLengthMax = 300;

/** Nodes that have answered a request already, with something other than yes. */
export interface Answered {
  readonly tried: ReadonlySet<NodeId>;
  readonly busy: ReadonlySet<NodeId>;
}

/** What a request needs of its node while it looks for a slot. */
export interface DispatchDeps extends WaitLimits {
  /** Whom to ask; those that have answered are excluded. A mere look around is no decision to be noted. */
  readonly rank: (digests: readonly Digest[], answered: Answered, isNoted?: 'unnoted') => Decision;
  readonly worker: (node: NodeId) => Worker;
  /** Whether others wait for the same, and a turn among them; absent: nobody waits anywhere but at the worker. */
  readonly line?: RequestLine | undefined;
  /** Tells the worker what its engine will have read; undefined when nobody has counted. */
  readonly prefix?: readonly number[] | undefined;
  /** A fresh record came with an answer. */
  readonly heard: (record: Busy['record']) => void;
  /** Leave the node alone for a while, at least for so long; or only its engine for a model. */
  readonly failed: (node: NodeId, forMs?: number) => void;
  readonly engineFailed: (node: NodeId, digest: Digest, beganMs: number) => void;
  readonly succeeded: (node: NodeId, digest: Digest) => void;
  /** What happens to the request, for the journal. */
  readonly note: (event: RequestEvent) => void;
  readonly clock: Clock;
  readonly patience: PatienceLimits;
}

/** What may run a request. */
export interface AcceptedModels {
  /** Best first. */
  readonly digests: readonly Digest[];
  /** Once a node has taken it for one of them, it is only ever moved to the same bytes (S65). */
  readonly exact: boolean;
}

/** A lease whose first bytes have arrived. */
export interface Started {
  readonly node: Ranked;
  readonly digest: Digest;
  readonly attempt: number;
  readonly response: Pick<WorkResponse, 'status' | 'contentType'>;
  readonly body: LeasedBody;
}

/**
 * Finds a node for the request and starts it there. May move on to another node until the first bytes have come from
 * one, never after (law 3). Throws what went wrong first, with everything that was tried in the details.
 */
export async function dispatch(
  request: ClientRequest,
  accepted: AcceptedModels,
  deps: DispatchDeps,
  signal: AbortSignal,
): Promise<Started> {
  using search = new Search(request, accepted, deps, signal);
  for (;;) {
    const taken = await search.take();
    const started = await search.start(taken);
    if (started) return started;
  }
}

interface Taken {
  readonly node: Ranked;
  readonly lease: Lease;
  readonly attempt: number;
}

/** An engine had begun with it. */
interface Ran {
  readonly digest: Digest;
  readonly beganMs: number;
}

/** One request on its way through the candidates: what was tried, and what came of it. */
class Search {
  readonly #request: ClientRequest;
  readonly #exact: boolean;
  #digests: readonly Digest[];
  readonly #deps: DispatchDeps;
  readonly #signal: AbortSignal;
  /** Nodes that will not be asked again, each with the reason in words. */
  readonly #tried = new Map<NodeId, Tried>();
  /** Nodes that answered busy, with the wait they told. */
  readonly #busy = new Map<NodeId, {readonly node: Ranked; readonly retryAfterMs: number}>();
  #attempt = 0;
  /** The prompt was too long for one, so only some are worth asking. */
  #tooLong: TooLong | undefined;
  #firstFault: Fault | undefined;
  /** Engines that answered with an error which may be the fault of the request, until another has answered it. */
  readonly #doubted: Parameters<DispatchDeps['engineFailed']>[] = [];
  #turn: Turn | undefined;

  constructor(request: ClientRequest, {digests, exact}: AcceptedModels, deps: DispatchDeps, signal: AbortSignal) {
    this.#request = request;
    this.#digests = digests;
    this.#exact = exact;
    this.#deps = deps;
    this.#signal = signal;
    this.#attempt = deps.attemptsBefore ?? 0;
  }

  /** Offers the request until somebody takes it. */
  async take(): Promise<Taken> {
    for (;;) {
      this.#signal.throwIfAborted();
      const answered = {tried: new Set(this.#tried.keys()), busy: new Set(this.#busy.keys())};
      const decision = this.#deps.rank(this.#digests, answered);
      const best = this.#tooLong ? decision.ranked.find(this.#tooLong.mayFit) : decision.best;
      const free = best?.place === undefined || this.#busy.size >= busyOffersMax ? undefined : best;
      const node = free ?? this.#shortestWait();
      if (!node || this.#attempt >= attemptsMax) throw this.#giveUp(decision.ranked);
      limitWait(free?.waitMs ?? this.#busy.get(node.node)?.retryAfterMs, this.#deps.waitMsMax);
      if (await this.#waitsForTurn(node, free === undefined, decision)) continue;
      const lease = await this.#offer(node, free === undefined);
      if (lease) return {node, lease, attempt: this.#attempt};
    }
  }

  /** Runs it and waits for the first bytes. Undefined: it broke before any, so another node may take it. */
  async start({node, lease, attempt}: Taken): Promise<Started | undefined> {
    const body = new LeasedBody(lease, node.name, this.#signal);
    const budgetMs = firstByteBudgetMs(node.cost, this.#deps.patience);
    const hasOther = (): boolean => this.#others(node).length > 0;
    const {clock} = this.#deps;
    const ran: Ran = {digest: lease.digest, beganMs: clock.monotonicMs()};
    using watch = watchFirstByte({clock, budgetMs, nodeName: node.name, hasOther}, this.#signal);
    const {signal, hasStalled} = watch;
    try {
      const response = await untilAborted(lease.run(this.#request.body, signal), signal);
      await untilAborted(body.begin(response), signal);
      watch[Symbol.dispose]();
      const failure = await this.#failureIn(response, body, node);
      if (failure === undefined) {
        if (response.status === 200) for (const doubted of this.#doubted) this.#deps.engineFailed(...doubted);
        this.#deps.succeeded(node.node, lease.digest);
        this.#noteStart(node, lease.digest, attempt, response.status);
        body.onRecord = record => this.#deps.heard(record);
        return {node, digest: lease.digest, attempt, response, body};
      }
      this.#noteBreak(node, attempt, failure, ran);
    } catch (error) {
      this.#signal.throwIfAborted();
      const fault = asFault(hasStalled() ? signal.reason : error, 'PEER_FAILED');
      if (fault.code === 'PEER_FAILED') this.#deps.failed(node.node, hasStalled() ? budgetMs : undefined);
      this.#noteBreak(node, attempt, fault, ran);
    }
    const ended = body.return();
    // One that does not answer may not end either, and nobody should wait for that.
    if (!hasStalled()) await ended;
    else ended.catch(() => undefined);
    return undefined;
  }

  /** True when it has waited for its turn, so that all must be looked at anew. */
  async #waitsForTurn(node: Ranked, isForced: boolean, decision: Decision): Promise<boolean> {
    const {line, rank} = this.#deps;
    this.#turn?.allow(slotsOf(decision.ranked));
    if (line === undefined || this.#turn !== undefined) return false;
    if (!expectsLine(node, isForced, decision) && !line.isCrowded()) return false;
    let hasWaited = false;
    const tried = new Set(this.#tried.keys());
    const at = standingAt(decision, () => rank(this.#digests, {tried, busy: new Set()}, 'unnoted'));
    this.#turn = await line.turn(at, this.#signal, ({position, waitMs}) => {
      limitWait(waitMs, this.#deps.waitMsMax);
      hasWaited = true;
      this.#deps.note({kind: 'queued', position, waitMs});
    });
    if (hasWaited) this.#busy.clear(); // what they said is old by now
    return hasWaited;
  }

  [Symbol.dispose](): void {
    this.#turn?.[Symbol.dispose]();
  }

  async #offer(node: Ranked, force: boolean): Promise<Lease | undefined> {
    this.#attempt += 1;
    const attempt = this.#attempt;
    const estimateMs = Math.round((node.cost?.firstByteSeconds ?? 0) * 1000);
    this.#deps.note({kind: 'offered', attempt, node: node.node, nodeName: node.name, force, estimateMs});
    let answer: Lease | Busy | Refusal;
    try {
      const offered = {node, attempt, digests: this.#digests, prefix: this.#deps.prefix, force};
      answer = await this.#deps.worker(node.node).offer(workRequest(this.#request, offered), this.#signal);
    } catch (error) {
      this.#signal.throwIfAborted();
      this.#deps.failed(node.node);
      this.#noteBreak(node, attempt, asFault(error, 'PEER_FAILED'));
      return undefined;
    }
    switch (answer.kind) {
      case 'accepted':
        this.#deps.note({kind: 'accepted', attempt, digest: answer.digest});
        if (this.#exact) this.#digests = [answer.digest];
        return answer;
      case 'busy':
        this.#deps.heard(answer.record);
        this.#deps.note({kind: 'busy', attempt, reason: answer.reason, retryAfterMs: answer.retryAfterMs});
        this.#busy.set(node.node, {node, retryAfterMs: answer.retryAfterMs});
        if (force) this.#note(node, new Fault('OVERLOADED', `${node.name} is busy and its queue is full`));
        return undefined;
      case 'refused': {
        const message = answer.message.slice(0, reasonLengthMax);
        this.#deps.note({kind: 'refused', attempt, code: answer.code, message});
        const code = answer.code === 'broken' ? 'ENGINE_FAILED' : 'NO_CANDIDATE';
        this.#note(node, new Fault(code, answer.message, {details: {refusal: answer.code}}));
        return undefined;
      }
    }
  }

  /** Of the nodes that are busy but not given up. */
  #shortestWait(): Ranked | undefined {
    const waiting = [...this.#busy.values()].filter(({node}) => !this.#tried.has(node.node));
    return waiting.toSorted((a, b) => a.retryAfterMs - b.retryAfterMs)[0]?.node;
  }

  /**
   * An answer that another node may do better: an overloaded or broken engine, or a 200 whose first event is an error
   * (R21). What the client did wrong stays its answer everywhere (R108).
   */
  async #failureIn(response: WorkResponse, body: LeasedBody, node: Ranked): Promise<Fault | undefined> {
    const {status} = response;
    const found = tooLong(status, body, node);
    if (found === undefined) return engineFailure(status, body);
    if (!this.#others(node).some(found.mayFit)) return undefined; // for all that there are
    this.#tooLong = found;
    return found.fault;
  }

  #noteStart(node: Ranked, digest: Digest, attempt: number, status: number): void {
    const {node: id, name: nodeName} = node;
    this.#deps.note({kind: 'started', attempt, node: id, nodeName, digest, model: this.#request.model, status});
  }

  /** The attempt came to nothing before there was output, so that another node may be asked. */
  #noteBreak(node: Ranked, attempt: number, fault: Fault, ran?: Ran): void {
    if (ran && fault.code === 'ENGINE_FAILED') {
      if (mayBeOfTheRequest(fault)) this.#doubted.push([node.node, ran.digest, ran.beganMs]);
      else this.#deps.engineFailed(node.node, ran.digest, ran.beganMs);
    }
    this.#deps.note({kind: 'broke', attempt, code: fault.code, message: reasonOf(fault)});
    this.#note(node, fault);
  }

  /** Who would be asked if this node were out. */
  #others({node}: Ranked): readonly Ranked[] {
    const answered = {tried: new Set([...this.#tried.keys(), node]), busy: new Set<NodeId>()};
    return this.#deps.rank(this.#digests, answered, 'unnoted').ranked.filter(({place}) => place !== undefined);
  }

  #note(node: Ranked, fault: Fault): void {
    this.#firstFault ??= fault;
    const isTooLarge = fault.details['refusal'] === 'memory';
    this.#tried.set(node.node, {name: node.name, reason: fault.message, isTooLarge});
  }

  #giveUp(ranked: readonly Ranked[]): Fault {
    const busyMs = [...this.#busy.values()].map(({retryAfterMs}) => retryAfterMs);
    return giveUp(this.#request, {ranked, tried: this.#tried, busyMs, firstFault: this.#firstFault});
  }
}
