import {asFault, describeError, Fault, firstByteBudgetMs} from '@hearsay/core';
import type {
  Busy,
  ClientRequest,
  Clock,
  Digest,
  Lease,
  NodeId,
  Ranked,
  Refusal,
  Worker,
  WorkRequest,
} from '@hearsay/core';
import type {PatienceLimits, WorkResponse} from '@hearsay/core';
import {unlessStalled, watchFirstByte} from './first-byte-watch.ts';
import {LeasedBody} from './leased-body.ts';
import {tooLargeEverywhere} from './too-large.ts';

/** Offers answered with `busy` before the shortest wait is taken as it is (design §4). */
const busyOffersMax = 3;

/** Attempts of one request, over all nodes: more only keeps a client waiting for the same bad news. */
const attemptsMax = 10;

/** Error bodies are small; a longer one is cut. */
const errorBodyBytesMax = 64 * 1024;

/** Nodes that have answered a request already, with something other than yes. */
export interface Answered {
  readonly tried: ReadonlySet<NodeId>;
  readonly busy: ReadonlySet<NodeId>;
}

/** What a request needs of its node while it looks for a slot. */
export interface DispatchDeps {
  /** Every node, best first; those that have answered are excluded. */
  readonly rank: (request: ClientRequest, digests: readonly Digest[], answered: Answered) => readonly Ranked[];
  readonly worker: (node: NodeId) => Worker;
  /** Tells the worker what its engine will have read; undefined when nobody has counted. */
  readonly prefix?: readonly number[] | undefined;
  /** A fresh record came with an answer. */
  readonly heard: (record: Busy['record']) => void;
  /** Leave it alone for a while, at least for so long. */
  readonly failed: (node: NodeId, forMs?: number) => void;
  readonly succeeded: (node: NodeId) => void;
  readonly clock: Clock;
  readonly patience: PatienceLimits;
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
  digests: readonly Digest[],
  deps: DispatchDeps,
  signal: AbortSignal,
): Promise<Started> {
  const search = new Search(request, digests, deps, signal);
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

/** One request on its way through the candidates: what was tried, and what came of it. */
class Search {
  readonly #request: ClientRequest;
  readonly #digests: readonly Digest[];
  readonly #deps: DispatchDeps;
  readonly #signal: AbortSignal;
  /** Nodes that will not be asked again, each with the reason in words. */
  readonly #tried = new Map<NodeId, {readonly name: string; readonly reason: string; readonly isTooLarge: boolean}>();
  /** Nodes that answered busy, with the wait they told. */
  readonly #busy = new Map<NodeId, {readonly node: Ranked; readonly retryAfterMs: number}>();
  #attempt = 0;
  /** The prompt was too long for this one, so only larger contexts are worth asking. */
  #tooShort: Ranked | undefined;
  #firstFault: Fault | undefined;

  constructor(request: ClientRequest, digests: readonly Digest[], deps: DispatchDeps, signal: AbortSignal) {
    this.#request = request;
    this.#digests = digests;
    this.#deps = deps;
    this.#signal = signal;
  }

  /** Offers the request until somebody takes it. */
  async take(): Promise<Taken> {
    for (;;) {
      this.#signal.throwIfAborted();
      const answered = {tried: new Set(this.#tried.keys()), busy: new Set(this.#busy.keys())};
      const ranked = this.#deps.rank(this.#request, this.#digests, answered);
      const best = this.#tooShort ? ranked.find(hasMoreContextThan(this.#tooShort)) : ranked[0];
      const free = best?.place === undefined || this.#busy.size >= busyOffersMax ? undefined : best;
      const node = free ?? this.#shortestWait();
      if (!node || this.#attempt >= attemptsMax) throw this.#giveUp(ranked);
      const lease = await this.#offer(node, free === undefined);
      if (lease) return {node, lease, attempt: this.#attempt};
    }
  }

  /** Runs it and waits for the first bytes. Undefined: it broke before any, so another node may take it. */
  async start({node, lease, attempt}: Taken): Promise<Started | undefined> {
    const body = new LeasedBody(lease, node.name, this.#signal);
    const budgetMs = firstByteBudgetMs(node.cost, this.#deps.patience);
    const hasOther = (): boolean => this.#others(node).length > 0;
    using watch = watchFirstByte({clock: this.#deps.clock, budgetMs, nodeName: node.name, hasOther});
    const {stalled} = watch;
    try {
      const run = lease.run(this.#request.body, AbortSignal.any([this.#signal, stalled]));
      const response = await unlessStalled(run, stalled);
      await unlessStalled(body.begin(response), stalled);
      watch[Symbol.dispose]();
      const failure = await this.#failureIn(response, body, node);
      if (failure?.code === 'BAD_REQUEST') this.#tooShort = node;
      if (failure === undefined) {
        this.#deps.succeeded(node.node);
        body.onRecord = record => this.#deps.heard(record);
        return {node, digest: lease.digest, attempt, response, body};
      }
      this.#note(node, failure);
    } catch (error) {
      this.#signal.throwIfAborted();
      const fault = asFault(stalled.aborted ? stalled.reason : error, 'PEER_FAILED');
      if (fault.code === 'PEER_FAILED') this.#deps.failed(node.node, stalled.aborted ? budgetMs : undefined);
      this.#note(node, fault);
    }
    const ended = body.return();
    // One that does not answer may not end either, and nobody should wait for that.
    if (!stalled.aborted) await ended;
    else ended.catch(() => undefined);
    return undefined;
  }

  async #offer(node: Ranked, force: boolean): Promise<Lease | undefined> {
    this.#attempt += 1;
    let answer: Lease | Busy | Refusal;
    try {
      answer = await this.#deps.worker(node.node).offer(this.#workRequest(node, force), this.#signal);
    } catch (error) {
      this.#signal.throwIfAborted();
      this.#deps.failed(node.node);
      this.#note(node, asFault(error, 'PEER_FAILED'));
      return undefined;
    }
    switch (answer.kind) {
      case 'accepted':
        this.#deps.heard(answer.record);
        return answer;
      case 'busy':
        this.#deps.heard(answer.record);
        this.#busy.set(node.node, {node, retryAfterMs: answer.retryAfterMs});
        if (force) this.#note(node, new Fault('OVERLOADED', `${node.name} is busy and its queue is full`));
        return undefined;
      case 'refused': {
        const code = answer.code === 'broken' ? 'ENGINE_FAILED' : 'NO_CANDIDATE';
        this.#note(node, new Fault(code, answer.message, {details: {refusal: answer.code}}));
        return undefined;
      }
    }
  }

  #workRequest(node: Ranked, force: boolean): WorkRequest {
    const {id, endpoint, needs, policy, body, contentType, traceparent, keepAliveMs} = this.#request;
    return {
      request: id,
      attempt: this.#attempt,
      hop: 0,
      digests: this.#digests,
      endpoint,
      needs,
      policy,
      deadlineMs: undefined,
      bodyBytes: body.length,
      contentType,
      waitEstimateMs: expectedWaitMs(node),
      force,
      traceparent,
      ...(keepAliveMs === undefined ? {} : {keepAliveMs}),
      ...(this.#deps.prefix ? {prefix: this.#deps.prefix} : {}),
    };
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
    if (status === 400 && body.firstBytesHave(tooLongMark) && this.#others(node).some(hasMoreContextThan(node))) {
      return new Fault('BAD_REQUEST', `the prompt is longer than the context of ${node.contextTokens ?? 0} tokens`);
    }
    if (status === 200) {
      const event = body.firstEventError();
      return event === undefined ? undefined : new Fault('ENGINE_FAILED', event, {details: {status}});
    }
    if (status !== 429 && (status < 500 || status === 501)) return undefined;
    const text = await body.readText(errorBodyBytesMax);
    return new Fault('ENGINE_FAILED', messageIn(text) ?? `llama-server answered ${status}`, {
      details: {status, body: text},
    });
  }

  /** Who would be asked if this node were out. */
  #others({node}: Ranked): readonly Ranked[] {
    const answered = {tried: new Set([...this.#tried.keys(), node]), busy: new Set<NodeId>()};
    const ranked = this.#deps.rank(this.#request, this.#digests, answered);
    return ranked.filter(({place}) => place !== undefined);
  }

  #note(node: Ranked, fault: Fault): void {
    this.#firstFault ??= fault;
    const isTooLarge = fault.details['refusal'] === 'memory';
    this.#tried.set(node.node, {name: node.name, reason: fault.message, isTooLarge});
  }

  /** The first cause, with what the others said (R22); or why nobody could be asked at all. */
  #giveUp(ranked: readonly Ranked[]): Fault {
    const tried = [...this.#tried.values()];
    const attempts = tried.map(({name, reason}) => `${name}: ${reason}`);
    const others = ranked.filter(({node}) => !this.#tried.has(node));
    const excluded = others.map(({name, exclusion}) => `${name}: ${exclusion ?? 'not asked'}`);
    if (tried.every(({isTooLarge}) => isTooLarge)) {
      const fault = tooLargeEverywhere(this.#request.model, others, tried);
      if (fault) return fault;
    }
    const details = {attempts, excluded};
    const waits = [...this.#busy.values()].map(({retryAfterMs}) => retryAfterMs);
    if (this.#firstFault) {
      const {code, message} = this.#firstFault;
      const retryAfterMs = waits.length > 0 ? {retryAfterMs: Math.min(...waits)} : {};
      const more = attempts.length > 1 ? ` (tried: ${attempts.join('; ')})` : '';
      return new Fault(code, `${message}${more}`, {
        cause: this.#firstFault,
        details: {...this.#firstFault.details, ...details, ...retryAfterMs},
      });
    }
    if (others.some(isUnable) && others.every(each => isUnable(each) || each.exclusion === 'artifact')) {
      const {model, needs} = this.#request;
      return new Fault('BAD_REQUEST', `${model || 'the model'} cannot do this: it lacks ${needs.join(' or ')}`, {
        details,
      });
    }
    return new Fault('NO_CANDIDATE', `no node can run this now (${excluded.join('; ')})`, {details});
  }
}

/** Has the model, which is no model for this: asking again cannot help. */
function isUnable({exclusion}: Ranked): boolean {
  return exclusion === 'capability';
}

/** Until the engine could begin with it, as the choice expected it. */
function expectedWaitMs({cost}: Ranked): number {
  return cost ? 1000 * (cost.terms.model + cost.terms.queue) : 0;
}

/** In the body of a 400 with which llama-server refuses a prompt that is longer than a slot (R25). */
const tooLongMark = '"exceed_context_size_error"';

function hasMoreContextThan(node: Ranked): (other: Ranked) => boolean {
  return ({contextTokens = 0}) => contextTokens > (node.contextTokens ?? 0);
}

/** The message of an OpenAI-style error body. */
function messageIn(text: string): string | undefined {
  const found = /"message"\s*:\s*"((?:[^"\\]|\\.)*)"/u.exec(text)?.[1];
  if (found === undefined) return undefined;
  try {
    return describeError(JSON.parse(`"${found}"`));
  } catch {
    return found;
  }
}
