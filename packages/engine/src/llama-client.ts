import type {Agent as PlainAgent, ClientRequest, IncomingMessage} from 'node:http';
import {Agent as SecureAgent, request as startSecureRequest} from 'node:https';
import {Fault, hasCode, methodOf} from '@hearsay/core';
import type {EngineCall, Endpoint, WorkResponse} from '@hearsay/core';

// An `import` of this module also loads the whole of `fetch`, which nothing here uses: 20 ms and 4 MB of every start.
const {Agent, request: startRequest} = process.getBuiltinModule('node:http');

/** One request to a llama-server, under way. */
export interface Call {
  /** The head, and the body as it comes. Rejects when no head came. */
  readonly response: Promise<WorkResponse>;
  /** Resolves when nothing of the call is under way any more: the answer is whole, or its socket is closed. */
  closed(): Promise<void>;
  /** Where it is: without an answer yet, with one that comes, with all of it here, or cut before that. */
  state(): CallState;
  /** Somebody has read all of it, or its socket is closed: there is nothing left to end. */
  isOver(): boolean;
}

type CallState = 'sent' | 'running' | 'whole' | 'cut';

export interface LlamaClientOptions {
  readonly port: number;
  readonly apiKey: string | undefined;
  /** Default: this machine, without TLS, at the root. */
  readonly host?: string;
  readonly isSecure?: boolean;
  readonly basePath?: string;
  /** Where an endpoint is, below the base path; default: where llama-server has it. */
  readonly pathOf?: (endpoint: Endpoint) => string;
  /** Default true. Without, no request is ever sent a second time because its connection was stale. */
  readonly keepsConnections?: boolean;
  /** Makes the fault for a call whose connection broke; may wait until it is known how the process died. */
  readonly explain: (cause: unknown) => Promise<Fault>;
}

/** The answer to a GET. */
export interface Look {
  readonly status: number;
  /** Undefined when the body is none. */
  readonly json: unknown;
}

interface Message {
  readonly path: string;
  /** A POST when there is one. */
  readonly body?: Uint8Array;
  /** Of the body; JSON unless given. */
  readonly contentType?: string | undefined;
  /** On a connection of its own. */
  readonly fresh?: boolean;
}

interface Exchange {
  readonly request: ClientRequest;
  readonly head: Promise<IncomingMessage>;
  readonly closed: Promise<void>;
  readonly state: () => CallState;
  readonly isOver: () => boolean;
}

/**
 * Speaks HTTP to one llama-server child. Connections are kept, because every request goes to the same place; there is
 * no time limit, because a long prompt is silent for minutes and a child that died closes its sockets.
 */
export class LlamaClient {
  readonly #options: LlamaClientOptions;
  readonly #agent: PlainAgent;
  readonly #stopped = new AbortController();
  #received = 0;

  constructor(options: LlamaClientOptions) {
    this.#options = options;
    const {isSecure = false, keepsConnections: keepAlive = true} = options;
    this.#agent = isSecure ? new SecureAgent({keepAlive}) : new Agent({keepAlive});
  }

  /** Sends the body as it is, where the endpoint takes one; nothing of the client's own headers goes along. */
  call({endpoint, body, contentType}: EngineCall, signal: AbortSignal): Call {
    const path = this.#options.pathOf?.(endpoint) ?? endpoint;
    const message = methodOf(endpoint) === 'GET' ? {path} : {path, body, contentType};
    let exchange = this.#send(message, signal);
    const head = exchange.head.catch(async (cause: unknown) => {
      // llama-server closes an idle connection after 5 s or 100 requests, perhaps just while we write to it. It has not
      // read the request then, so this is no second run.
      const wasStale = exchange.request.reusedSocket && hasCode(cause, 'ECONNRESET', 'EPIPE') && !this.#isOver(signal);
      if (!wasStale) throw cause;
      await exchange.closed;
      exchange = this.#send({...message, fresh: true}, signal);
      return exchange.head;
    });
    return {
      response: this.#respond(head, signal),
      closed: async () => {
        await head.catch(() => undefined);
        await exchange.closed;
      },
      state: () => exchange.state(),
      isOver: () => exchange.isOver(),
    };
  }

  /** Grows with every piece of an answer that is read. */
  get received(): number {
    return this.#received;
  }

  /** What a GET is answered; undefined when nobody answered within the signal's time. */
  async look(path: string, signal: AbortSignal): Promise<Look | undefined> {
    try {
      const response = await this.#send({path}, signal).head;
      const body = Buffer.concat(await Array.fromAsync<Buffer>(response));
      return {status: response.statusCode ?? 0, json: parsed(body.toString())};
    } catch {
      return undefined; // not listening yet, or gone; the process itself tells which
    }
  }

  /** Whether nobody listens at its port. */
  async isRefused(signal: AbortSignal): Promise<boolean> {
    try {
      const response = await this.#send({path: '/health', fresh: true}, signal).head;
      response.resume();
      return false;
    } catch (error) {
      return hasCode(error, 'ECONNREFUSED');
    }
  }

  /** Cuts every call: llama-server does not end while one is open. */
  destroy(): void {
    this.#stopped.abort();
    this.#agent.destroy();
  }

  async #respond(head: Promise<IncomingMessage>, signal: AbortSignal): Promise<WorkResponse> {
    try {
      const response = await head;
      const {'content-encoding': encoding = 'identity'} = response.headers;
      if (encoding !== 'identity') {
        response.destroy();
        throw new Fault('ENGINE_FAILED', `the engine compressed its answer (${encoding}), which nobody asked it to do`);
      }
      return {
        status: response.statusCode ?? 0,
        contentType: response.headers['content-type'] ?? 'application/octet-stream',
        body: this.#chunks(response, signal),
        record: () => undefined,
      };
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof Fault) throw cause;
      throw await this.#options.explain(cause);
    }
  }

  async *#chunks(response: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const chunk of response) {
        const bytes: Uint8Array = chunk;
        this.#received += 1;
        yield bytes;
      }
    } catch (cause) {
      signal.throwIfAborted();
      // What came before the break is still in the stream, whose iterator leaves it there.
      const last: unknown = response.read();
      if (last instanceof Uint8Array) yield last;
      throw await this.#options.explain(cause);
    }
    signal.throwIfAborted();
    if (!response.complete) throw await this.#options.explain(new Error('the answer was cut'));
  }

  #send({path, body, contentType = 'application/json', fresh = false}: Message, signal: AbortSignal): Exchange {
    const {port, apiKey, host = '127.0.0.1', isSecure = false, basePath = ''} = this.#options;
    const headers = {
      ...(apiKey === undefined ? {} : {authorization: `Bearer ${apiKey}`}),
      ...(body === undefined ? {} : {'content-type': contentType, 'content-length': body.byteLength}),
    };
    const method = body === undefined ? 'GET' : 'POST';
    const agent = fresh ? false : this.#agent;
    const request = (isSecure ? startSecureRequest : startRequest)({
      host,
      port,
      method,
      path: `${basePath}${path}`,
      headers,
      agent,
    });
    const head = Promise.withResolvers<IncomingMessage>();
    const closed = Promise.withResolvers<void>();
    let response: IncomingMessage | undefined;
    let isClosed = false;
    const state = (): CallState => {
      if (response?.complete === true) return 'whole';
      if (isClosed) return 'cut';
      return response === undefined ? 'sent' : 'running';
    };
    // The response is destroyed where there is one: destroying only the request would let the rest of it be read first.
    const cut = (): void => void (response ?? request).destroy(new Error('the call was ended'));
    const signals = [signal, this.#stopped.signal];
    for (const each of signals) each.addEventListener('abort', cut, {once: true});
    request.on('response', message => {
      response = message;
      this.#received += 1;
      message.on('error', () => {}); // whoever reads the body gets it too; if nobody reads, it must not end the daemon
      head.resolve(message);
    });
    request.on('error', error => head.reject(error));
    request.on('close', () => {
      isClosed = true;
      for (const each of signals) each.removeEventListener('abort', cut);
      // An error is only made when it is news: most calls end so, and a stack trace is dear.
      if (response === undefined) head.reject(new Error('the connection was closed'));
      closed.resolve();
    });
    if (this.#isOver(signal)) cut();
    request.end(body);
    const isOver = (): boolean => isClosed || response?.readableEnded === true;
    return {request, head: head.promise, closed: closed.promise, state, isOver};
  }

  #isOver(signal: AbortSignal): boolean {
    return signal.aborted || this.#stopped.signal.aborted;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
