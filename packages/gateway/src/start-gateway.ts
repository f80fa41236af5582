import {once} from 'node:events';
import {createServer} from 'node:http';
import type {IncomingMessage, Server, ServerResponse} from 'node:http';
import {isIP} from 'node:net';
import type {Socket} from 'node:net';
import {fastify} from 'fastify';
import type {FastifyInstance} from 'fastify';
import {describeError, Fault, nameLengthMax} from '@hearsay/core';
import type {Clock, Cluster, Environment, StatusReport} from '@hearsay/core';
import {isLoopback, letIn} from './front-door.ts';
import type {DoorRules} from './front-door.ts';
import {identify} from './identify.ts';
import type {KeyRules} from './identify.ts';
import type {KeyRing} from './key-ring.ts';
import {badRequest, problemBody, problemFrom, sendProblem} from './problem.ts';
import {addRoutes} from './routes.ts';

export interface GatewayConfig {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Take the next free port when this one is taken. */
  readonly anyPort: boolean;
  /** Web pages of other machines that may call us, as `https://chat.example`; `*`: every page. */
  readonly corsOrigins?: readonly string[];
  /** Names of this machine that clients may use beside localhost, *.local, *.internal and private addresses. */
  readonly hostnames?: readonly string[];
  /** Also programs of this machine need a key. */
  readonly requireKey?: boolean;
  /** Allows a listener that other machines can use without a key. */
  readonly insecure?: boolean;
  /** How long a waiting stream is silent, so that a failure can still have its own status. */
  readonly silenceMs?: number;
  /** Pause between keep-alive comments after that. */
  readonly keepAliveMs?: number;
}

export interface GatewayDeps extends Environment {
  readonly cluster: Cluster;
  readonly status: () => StatusReport;
  /** Keys of applications; without them only this machine's programs may come in. */
  readonly keys?: KeyRing;
}

export interface Gateway extends AsyncDisposable {
  /** What clients on this machine use: `http://127.0.0.1:4327`. */
  readonly url: string;
  /** Requests that are being read or answered now. */
  inFlight(): number;
}

/** How many ports after the wanted one are tried. */
const portsTriedMax = 50;

/** How long clients may take to receive the end of their running answers when the gateway closes. */
const closeMsMax = 1000;

/** After that long only slow clients are still at it; every other connection is closed. */
const closeMsMin = 50;

/** Longer than the idle time of the usual proxies in front, so that they close first and meet no closed connection. */
const keepAliveTimeout = 72_000;

const headersTimeout = 60_000;

/** For receiving a request, not for answering it: 64 MiB over a bad link. A pause ends an upload much sooner. */
const requestTimeout = 60 * 60_000;

/** Far more than the machines of one owner need, and few enough that their buffers fit into memory. */
const connectionsMax = 4096;

/** A model name of the longest kind with every character percent-encoded. */
const pathLengthMax = 9 * nameLengthMax;

/** Opens the HTTP side of the node. Throws BAD_CONFIG when it may not or cannot listen there. */
export async function startGateway(config: GatewayConfig, deps: GatewayDeps): Promise<Gateway> {
  const isLocal = isLoopback(config.host);
  const {insecure = false, requireKey = false} = config;
  if (!isLocal && !insecure && (deps.keys?.isEmpty() ?? true)) throw openToAll(config.host);
  const running = new Set<AbortController>();
  const app = createApp({
    corsOrigins: config.corsOrigins ?? [],
    hostnames: (config.hostnames ?? []).map(name => name.toLowerCase()),
    checkHost: isLocal,
    keys: {ring: deps.keys, requireKey, insecure},
  });
  addRoutes(app, {
    ...deps,
    running,
    silenceMs: config.silenceMs ?? 10_000,
    keepAliveMs: config.keepAliveMs ?? 15_000,
    startedSeconds: Math.floor(deps.clock.wallMs() / 1000),
  });
  await app.ready();
  const port = await listen(app.server, config);
  return {
    url: `http://${urlHost(config.host)}:${port}`,
    inFlight: () => running.size,
    [Symbol.asyncDispose]: async () => {
      await close(app.server, running, deps.clock);
      await app.close();
    },
  };
}

/** Fastify behind the front door, with errors in our shape also where no route has been found. */
function createApp(rules: DoorRules & {readonly keys: KeyRules}): FastifyInstance {
  return fastify({
    serverFactory: handle => {
      const options = {keepAliveTimeout, headersTimeout, requestTimeout, noDelay: true};
      const server = createServer(options, (request, response) => {
        if (!letIn(request, response, rules)) return;
        const problem = identify(request, rules.keys);
        if (problem) return sendProblem(response, problem);
        delete request.headers['content-type']; // clients send any or none (C64); Fastify would refuse some
        handle(request, response);
      });
      server.maxConnections = connectionsMax;
      return server;
    },
    routerOptions: {ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: pathLengthMax},
    frameworkErrors: ({message}, _request, reply) => {
      reply.hijack();
      sendProblem(reply.raw, badRequest(message, {code: 'bad_url'}));
    },
    clientErrorHandler: refuseNonsense,
  });
}

/** What comes in is not HTTP, or its head is too long or too slow: there is no request that could be answered. */
function refuseNonsense({code}: {readonly code?: string}, socket: Socket): void {
  if (!socket.writable || code === 'ECONNRESET') return void socket.destroy();
  const [status, message] = nonsense.get(code ?? '') ?? ['400 Bad Request', 'this is not an HTTP request'];
  const body = JSON.stringify(problemBody(badRequest(message, {code: 'bad_http'})));
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\nconnection: close\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const nonsense: ReadonlyMap<string, readonly [string, string]> = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', ['408 Request Timeout', 'the request did not come in time']],
  ['HPE_HEADER_OVERFLOW', ['431 Request Header Fields Too Large', 'the headers are larger than 16 KiB']],
]);

async function listen(server: Server, {host, port, anyPort}: GatewayConfig): Promise<number> {
  const last = anyPort && port !== 0 ? Math.min(port + portsTriedMax, 65_535) : port;
  for (let tried = port; ; tried += 1) {
    try {
      server.listen(tried, host);
      await once(server, 'listening');
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : tried;
    } catch (cause) {
      if (isTaken(cause) && tried < last) continue;
      const ports = last > port ? `ports ${port} to ${last}` : `port ${port}`;
      throw new Fault('BAD_CONFIG', `the gateway cannot listen on ${host}, ${ports}: ${describeError(cause)}`, {cause});
    }
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}

/** Ends running answers in their own dialect, then cuts whoever still does not let go. */
async function close(server: Server, running: ReadonlySet<AbortController>, clock: Clock): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, 'close');
  const reason = new Fault('INTERRUPTED', 'node is shutting down', {details: {retryAfterMs: 1000}});
  server.close();
  server.removeAllListeners('request');
  server.on('request', (_request: IncomingMessage, response: ServerResponse) => {
    const problem = problemFrom(reason);
    sendProblem(response, {...problem, status: 503, headers: {...problem.headers, connection: 'close'}});
  });
  const hasAnswers = running.size > 0;
  for (const controller of running) controller.abort(reason);
  const sweep = clock.after(closeMsMin, () => server.closeIdleConnections());
  const cut = clock.after(hasAnswers ? closeMsMax : closeMsMin, () => server.closeAllConnections());
  await closed;
  sweep[Symbol.dispose]();
  cut[Symbol.dispose]();
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return isIP(host) === 6 ? `[${host}]` : host;
}

function openToAll(host: string): Fault {
  return new Fault(
    'BAD_CONFIG',
    `the gateway has no keys yet, so it does not listen on ${host}, where other machines could use it; ` +
      'start it on 127.0.0.1 and make one with `hearsay key create NAME`, or set gateway.insecure if that is what you want',
    {details: {host}},
  );
}
