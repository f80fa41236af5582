import {asFault, describeError, Fault, reasonOf} from '@hearsay/core';
import type {Busy, ClientRequest, Digest, Lease, NodeId, Ranked, Refusal, Worker, WorkRequest} from '@hearsay/core';
import type {RequestEvent, WorkResponse} from '@hearsay/core';
import {LeasedBody} from './leased-body.ts';
import {tooLargeEverywhere} from './too-large.ts';

/** Offers answered with `busy` before the shortest wait is taken as it is (design §4). */
const busyOffersMax = 3;

/** Attempts of one request, over all nodes: more only keeps a client waiting for the same bad news. */
const attemptsMax = 10;

/** Longest reason of a refusal that is kept. */
const reasonLengthMax = 300;

/** Error bodies are small; a longer one is cut. */
const errorBodyBytesMax = 64 * 1024;

/** What a request needs of its node while it looks for a slot. */
export interface DispatchDeps {
  /** Every node, best first; those in `tried` are excluded. */
  readonly rank: (request: ClientRequest, digests: readonly Digest[], tried: ReadonlySet<NodeId>) => readonly Ranked[];
  readonly worker: (node: NodeId) => Worker;
  /** A fresh record came with an answer. */
  readonly heard: (record: Busy['record']) => void;
  readonly failed: (node: NodeId) => void;
  readonly succeeded: (node: NodeId) => void;
  /** What happens to the request, for the journal. */
  readonly note: (event: RequestEvent) => void;
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
  const search = new Search(request, accepted, deps, signal);
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
  readonly #exact: boolean;
  #digests: readonly Digest[];
  readonly #deps: DispatchDeps;
  readonly #signal: AbortSignal;
  /** Nodes that will not be asked again, each with the reason in words. */
  readonly #tried = new Map<NodeId, {readonly name: string; readonly reason: string; readonly isTooLarge: boolean}>();
  /** Nodes that answered busy, with the wait they told. */
  readonly #busy = new Map<NodeId, {readonly node: Ranked; readonly retryAfterMs: number}>();
  #attempt = 0;
  #firstFault: Fault | undefined;

  constructor(request: ClientRequest, {digests, exact}: AcceptedModels, deps: DispatchDeps, signal: AbortSignal) {
    this.#request = request;
    this.#digests = digests;
    this.#exact = exact;
    this.#deps = deps;
    this.#signal = signal;
  }

  /** Offers the request until somebody takes it. */
  async take(): Promise<Taken> {
    for (;;) {
      this.#signal.throwIfAborted();
      const excluded = new Set([...this.#tried.keys(), ...this.#busy.keys()]);
      const ranked = this.#deps.rank(this.#request, this.#digests, excluded);
      const [best] = ranked;
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
    try {
      const response = await lease.run(this.#request.body, this.#signal);
      await body.begin(response);
      const failure = await this.#failureIn(response, body);
      if (failure === undefined) {
        this.#deps.succeeded(node.node);
        this.#noteStart(node, lease.digest, attempt, response.status);
        body.onRecord = record => this.#deps.heard(record);
        return {node, digest: lease.digest, attempt, response, body};
      }
      this.#noteBreak(node, attempt, failure);
    } catch (error) {
      await body.return();
      this.#signal.throwIfAborted();
      const fault = asFault(error, 'PEER_FAILED');
      if (fault.code === 'PEER_FAILED') this.#deps.failed(node.node);
      this.#noteBreak(node, attempt, fault);
    }
    await body.return();
    return undefined;
  }

  async #offer(node: Ranked, force: boolean): Promise<Lease | undefined> {
    this.#attempt += 1;
    const attempt = this.#attempt;
    const {name: nodeName, waitMs: estimateMs} = node;
    this.#deps.note({kind: 'offered', attempt, node: node.node, nodeName, force, estimateMs});
    let answer: Lease | Busy | Refusal;
    try {
      answer = await this.#deps.worker(node.node).offer(this.#workRequest(node, force), this.#signal);
    } catch (error) {
      this.#signal.throwIfAborted();
      this.#deps.failed(node.node);
      this.#noteBreak(node, attempt, asFault(error, 'PEER_FAILED'));
      return undefined;
    }
    switch (answer.kind) {
      case 'accepted':
        this.#deps.heard(answer.record);
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
        this.#deps.note({
          kind: 'refused',
          attempt,
          code: answer.code,
          message: answer.message.slice(0, reasonLengthMax),
        });
        const code = answer.code === 'broken' ? 'ENGINE_FAILED' : 'NO_CANDIDATE';
        this.#note(node, new Fault(code, answer.message, {details: {refusal: answer.code}}));
        return undefined;
      }
    }
  }

  #workRequest(node: Ranked, force: boolean): WorkRequest {
    const {id, endpoint, needs, policy, body, contentType, traceparent, keepAliveMs, caller} = this.#request;
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
      waitEstimateMs: node.waitMs,
      force,
      traceparent,
      caller,
      ...(keepAliveMs === undefined ? {} : {keepAliveMs}),
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
  async #failureIn(response: WorkResponse, body: LeasedBody): Promise<Fault | undefined> {
    const {status} = response;
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

  #noteStart(node: Ranked, digest: Digest, attempt: number, status: number): void {
    const {node: id, name: nodeName} = node;
    this.#deps.note({kind: 'started', attempt, node: id, nodeName, digest, model: this.#request.model, status});
  }

  /** The attempt came to nothing before there was output, so that another node may be asked. */
  #noteBreak(node: Ranked, attempt: number, fault: Fault): void {
    this.#deps.note({kind: 'broke', attempt, code: fault.code, message: reasonOf(fault)});
    this.#note(node, fault);
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
    if (isForbidden(others)) {
      const nodes = others.filter(({exclusion}) => exclusion === 'not authorized').map(({name}) => name);
      const right = `the node ${nodes.join(' or ')}`;
      const message = `the key ${this.#request.caller?.name ?? ''} lacks a right that this request needs: ${right}`;
      return new Fault('FORBIDDEN', message, {details: {right, retryable: false}});
    }
    if (others.some(isUnable) && others.every(each => isUnable(each) || each.exclusion === 'artifact')) {
      const {model, needs} = this.#request;
      return new Fault('BAD_REQUEST', `${model || 'the model'} cannot do this: it lacks ${needs.join(' or ')}`, {
        details,
      });
    }
    const {placement} = this.#request.policy;
    const what = placement.kind === 'pin' ? `pinned to ${placement.nodes.join(' or ')}, and it` : 'no node';
    const not = placement.kind === 'pin' ? 'cannot' : 'can';
    return new Fault('NO_CANDIDATE', `${what} ${not} run this now (${excluded.join('; ')})`, {details});
  }
}

/** Nobody is left, and only the rights of the key kept those out that could have run it. */
function isForbidden(nodes: readonly Ranked[]): boolean {
  const others = nodes.filter(({exclusion}) => exclusion !== 'policy' && exclusion !== 'artifact');
  return others.length > 0 && others.every(({exclusion}) => exclusion === 'not authorized');
}

/** Has the model, which is no model for this: asking again cannot help. */
function isUnable({exclusion}: Ranked): boolean {
  return exclusion === 'capability';
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
