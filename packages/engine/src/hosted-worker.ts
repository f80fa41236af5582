import {createHash} from 'node:crypto';
import {Fault, hostedName, toDigest, toNodeId} from '@hearsay/core';
import type {Busy, Digest, Environment, HostedService, Lease, NodeId, Refusal, WorkRequest} from '@hearsay/core';
import type {WorkResponse} from '@hearsay/core';
import {complainHosted, hostedBody} from './hosted-body.ts';
import type {HostedBody, HostedLimits} from './hosted-body.ts';
import type {HostedBudget, Spending} from './hosted-budget.ts';
import {HostedUsage} from './hosted-usage.ts';
import {LlamaClient} from './llama-client.ts';

/** A service with an OpenAI-compatible API that the owner of this node pays for. */
export interface HostedConfig extends HostedLimits, Pick<HostedService, 'waitMsMax'> {
  readonly name: string;
  /** The base as its manual gives it, mostly with `/v1` at its end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  /** Our names or patterns, each with the service's own name of the model. */
  readonly models: Readonly<Record<string, string>>;
  readonly tokensPerMonth: number;
}

/** A service that says nothing at all for so long is given up: its first words come within seconds. */
const firstBytesMsMax = 120_000;

/** More at once is no fallback any more, and would spend the month before the first has been counted. */
const inFlightMax = 16;

/** What is the client's to hear: the request itself is wrong. Everything else is between the service and the owner. */
const passedOn: readonly number[] = [200, 400, 413, 422];

/** What asking another service, or later, may mend; whoever dispatches knows how. */
const mendable: readonly number[] = [429, 500, 502, 503, 504, 529];

/** A hosted service as a worker: the third kind beside this machine and a peer, and the only door to the internet. */
export class HostedWorker implements HostedService, AsyncDisposable {
  readonly name: string;
  readonly waitMsMax: number;
  readonly models: HostedService['models'];
  readonly worker: HostedService['worker'];
  readonly #config: HostedConfig;
  readonly #budget: HostedBudget;
  readonly #environment: Environment;
  readonly #client: LlamaClient;
  readonly #modelNames: ReadonlyMap<Digest, string>;
  #inFlight = 0;

  constructor(config: HostedConfig, budget: HostedBudget, environment: Environment) {
    const {name, waitMsMax} = config;
    const url = new URL(config.url);
    this.name = name;
    this.waitMsMax = waitMsMax;
    this.models = Object.entries(config.models).map(([pattern, model]) => ({pattern, digest: digestOf(name, model)}));
    this.worker = {node: nodeOf(name), offer: async request => this.#offer(request)};
    this.#modelNames = new Map(Object.values(config.models).map(model => [digestOf(name, model), model]));
    this.#config = config;
    this.#budget = budget;
    this.#environment = environment;
    this.#client = new LlamaClient({
      host: url.hostname.replace(/^\[|\]$/gu, ''),
      port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
      isSecure: url.protocol === 'https:',
      basePath: url.pathname.replace(/\/+$/u, ''),
      pathOf: endpoint => endpoint.replace(/^\/v1/u, ''),
      keepsConnections: false,
      apiKey: config.apiKey,
      explain: async cause => this.#failed(cause instanceof Error ? cause.message : 'it cannot be reached', cause),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy();
  }

  /** Checks and takes in one synchronous step; local-required ends here whoever asks (law 7). */
  #offer(request: WorkRequest): Lease | Busy | Refusal {
    const {policy, hop, digests} = request;
    if (policy.localRequired) return refuse('policy', 'the request is local-required; it never leaves the mesh');
    if (hop !== 0) return refuse('hop', 'a hosted service is only for what enters at this node');
    const digest = digests.find(each => this.#modelNames.has(each));
    const model = digest && this.#modelNames.get(digest);
    if (digest === undefined || model === undefined) {
      return refuse('digest', `${this.name} has no model for this name (hosted.${this.name}.models)`);
    }
    const complaint = complainHosted(request, this.#config);
    if (complaint) return complaint;
    if (this.#inFlight >= inFlightMax) {
      return {kind: 'busy', reason: 'slots', record: undefined, retryAfterMs: 1000};
    }
    const {tokensPerMonth, tokensPerRequest} = this.#config;
    const spending = this.#budget.take(this.name, tokensPerRequest, tokensPerMonth);
    if (!spending) {
      const spent = `${this.#budget.spent(this.name)} of ${tokensPerMonth} tokens`;
      return refuse(
        'policy',
        `${this.name} has cost ${spent} this month, and this request may cost ${tokensPerRequest}`,
      );
    }
    this.#inFlight += 1;
    return this.#lease(request, {digest, model, spending});
  }

  #lease(request: WorkRequest, {digest, model, spending}: Taken): Lease {
    const end = new AbortController();
    let isOver = false;
    return {
      kind: 'accepted',
      digest,
      run: async (bytes, signal) => {
        const {endpoint} = request;
        const body = hostedBody(bytes, {endpoint, model}, this.#config);
        await spending.sent();
        return this.#run(request, body, {spending, signal: AbortSignal.any([signal, end.signal])});
      },
      [Symbol.asyncDispose]: async () => {
        if (isOver) return;
        isOver = true;
        this.#inFlight -= 1;
        end.abort(new Fault('CANCELLED', 'the lease has ended'));
        spending[Symbol.dispose]();
      },
    };
  }

  async #run({endpoint}: WorkRequest, body: HostedBody, {spending, signal}: Running): Promise<WorkResponse> {
    const late = new AbortController();
    using _limit = this.#environment.clock.after(firstBytesMsMax, () => late.abort());
    const call = this.#client.call({endpoint, body: body.bytes}, AbortSignal.any([signal, late.signal]));
    let response: WorkResponse;
    try {
      response = await call.response;
    } catch (error) {
      signal.throwIfAborted();
      throw late.signal.aborted ? this.#failed(`no answer within ${firstBytesMsMax / 1000} s`, error) : error;
    }
    const {status} = response;
    if (status !== 200) spending.settle(0);
    if (!passedOn.includes(status) && !mendable.includes(status)) {
      throw this.#failed(`it answered ${status}; see its key, address and models in the config`, undefined);
    }
    return status === 200 ? {...response, body: counted(response.body, body, spending)} : response;
  }

  #failed(reason: string, cause: unknown): Fault {
    const {name: hosted} = this;
    return new Fault('ENGINE_FAILED', `${hostedName(hosted)} failed: ${reason}`, {cause, details: {hosted}});
  }
}

interface Taken {
  readonly digest: Digest;
  readonly model: string;
  readonly spending: Spending;
}

interface Running {
  readonly spending: Spending;
  readonly signal: AbortSignal;
}

/** The answer as the client should get it; at its end the tokens that were not needed are given back. */
async function* counted(
  source: AsyncIterable<Uint8Array>,
  {wantsUsage, tokensMax}: HostedBody,
  spending: Spending,
): AsyncGenerator<Uint8Array, void, undefined> {
  const usage = new HostedUsage(wantsUsage);
  try {
    for await (const chunk of source) {
      const passed = usage.pass(chunk);
      if (passed.length > 0) yield passed;
    }
    const rest = usage.end();
    if (rest.length > 0) yield rest;
  } finally {
    // One that was left before its end may have been counted there as a whole.
    spending.settle(usage.tokens() ?? tokensMax);
  }
}

function refuse(code: Refusal['code'], message: string): Refusal {
  return {kind: 'refused', code, message};
}

/** Stands for the bytes that nobody can hash. */
function digestOf(service: string, model: string): Digest {
  const hash = createHash('sha256').update(`hearsay hosted model 1\n${JSON.stringify([service, model])}`);
  return toDigest(`sha256:${hash.digest('hex')}`);
}

const base58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/** No node has such an id: theirs are hashes of keys and begin otherwise. */
function nodeOf(service: string): NodeId {
  const hash = createHash('sha256').update(`hearsay hosted service 1\n${service}`).digest();
  return toNodeId(`Hosted${Array.from(hash, byte => base58[byte % base58.length]).join('')}`);
}
