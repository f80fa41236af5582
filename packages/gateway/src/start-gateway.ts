import {once} from 'node:events';
import {readFile} from 'node:fs/promises';
import type {IncomingMessage, Server, ServerResponse} from 'node:http';
import {isIP} from 'node:net';
import {createSecureContext} from 'node:tls';
import {bodyBytesMax as bodyBytesMaxAnywhere, describeError, Fault, hasCode} from '@hearsay/core';
import type {Clock, Cluster, Environment, MeshAdmin, StatusReport} from '@hearsay/core';
import {createApp} from './create-app.ts';
import {errorFormFor} from './error-form.ts';
import {isLoopback} from './front-door.ts';
import {identifyBy} from './identify.ts';
import {IdempotentAnswers} from './idempotency.ts';
import type {KeyRing} from './key-ring.ts';
import {HeldBodies, heldBytesMax} from './held-bodies.ts';
import type {JsonObject} from './json.ts';
import {limitConnections} from './limit-connections.ts';
import {listenAlso} from './listen-also.ts';
import {openBlobs} from './ollama/blobs.ts';
import {openPresets} from './ollama/presets.ts';
import {endReason, sendProblem, shuttingDown} from './problem.ts';
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
  /** Every client must send one of them; none: everybody may come in. */
  readonly keys?: readonly string[];
  /** Also programs of this machine need a key. */
  readonly requireKey?: boolean;
  /** Allows a listener that other machines can reach although there are no keys. */
  readonly insecure?: boolean;
  /** Largest body of a request, as sent and as decoded; `bodyBytesMax` unless given, and never more. */
  readonly bodyBytesMax?: number;
  /** All bodies together that are held at one time. */
  readonly heldBytesMax?: number;
  /** Files in PEM; with them the gateway speaks HTTPS only. */
  readonly tls?: {readonly certFile: string; readonly keyFile: string} | undefined;
  /** Names for models: `{'claude-haiku-*': 'qwen3'}`. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** What requests that name no model go to; the only one that can answer them unless given. */
  readonly defaultModel?: string | undefined;
  /** How long a waiting stream is silent, so that a failure can still have its own status. */
  readonly silenceMs?: number;
  /** Pause between keep-alive comments after that. */
  readonly keepAliveMs?: number;
  /** How long a client may take no byte of its stream. */
  readonly stalledMs?: number;
  /** How long the head of a request may take to come. */
  readonly headMsMax?: number;
  /** The context of an engine that this node would start, for Ollama's `show`. */
  readonly contextTokens?: number;
  /** Keeps the names that Ollama clients make; without it they cannot make any. */
  readonly presetsFile?: string;
  /** Keeps the files that Ollama clients bring, as hearsay's own store of models; without it they cannot bring any. */
  readonly blobsFolder?: string;
  /** How many files and connections this process may have open at once; undefined: as many as it likes. */
  readonly openFilesMax?: number | undefined;
  /** A further port to serve, when it is free: clients look for Ollama at a certain one. */
  readonly alsoPort?: number | undefined;
}

export interface GatewayDeps extends Environment {
  readonly cluster: Cluster;
  readonly status: () => StatusReport;
  /** The admin API as an OpenAPI document, made when somebody asks for it; undefined: it is not told. */
  readonly openApi?: (() => Promise<JsonObject>) | undefined;
  /** Who may be in the mesh; without it, nobody can change that over HTTP. */
  readonly mesh?: MeshAdmin;
  /** Keys of applications, beside those of the config. */
  readonly keyRing?: KeyRing;
}

export interface Gateway extends AsyncDisposable {
  /** What clients on this machine use: `http://127.0.0.1:4327`. */
  readonly url: string;
  /** Requests that are being read or answered now. */
  inFlight(): number;
  /** From here on requests for engines are turned away; those that run go on. */
  retire(): void;
}

/** How many ports after the wanted one are tried. */
const portsTriedMax = 50;

/** How long clients may take to receive the end of their running answers when the gateway closes. */
const closeMsMax = 1000;

/** After that long only slow clients are still at it; every other connection is closed. */
const closeMsMin = 50;

/** A client that sends its head more slowly than this is broken, or holds connections on purpose. */
const headMsMax = 60_000;

/** Opens the HTTP side of the node. Throws BAD_CONFIG when it may not or cannot listen there. */
export async function startGateway(config: GatewayConfig, deps: GatewayDeps): Promise<Gateway> {
  const isLocal = isLoopback(config.host);
  const keys = (config.keys ?? []).filter(key => key !== '');
  const {insecure = false, requireKey = false} = config;
  const {keyRing: ring} = deps;
  const hasKeys = keys.length > 0 || ring?.isEmpty() === false;
  if (!isLocal && !hasKeys && !insecure) throw openToAll(config.host);
  const running = new Set<AbortController>();
  let isRetiring = false;
  const bodyBytesMax = Math.min(config.bodyBytesMax ?? bodyBytesMaxAnywhere, bodyBytesMaxAnywhere);
  const bodies = new HeldBodies(config.heldBytesMax ?? heldBytesMax);
  const app = createApp({
    random: deps.random,
    authorise: identifyBy({keys, ring, requireKey, insecure}),
    headMsMax: config.headMsMax ?? headMsMax,
    bodyBytesMax,
    bodies,
    tls: config.tls && (await readTls(config.tls)),
    corsOrigins: config.corsOrigins ?? [],
    hostnames: (config.hostnames ?? []).map(name => name.toLowerCase()),
    checkHost: isLocal,
  });
  addRoutes(app, {
    ...deps,
    running,
    isRetiring: () => isRetiring,
    answers: new IdempotentAnswers(deps.clock),
    bodyBytesMax,
    bodies,
    aliases: config.aliases ?? {},
    defaultModel: config.defaultModel,
    silenceMs: config.silenceMs ?? 10_000,
    keepAliveMs: config.keepAliveMs ?? 15_000,
    stalledMs: config.stalledMs,
    startedSeconds: Math.floor(deps.clock.wallMs() / 1000),
    contextTokens: config.contextTokens,
    presets: await openPresets(config.presetsFile),
    blobs: openBlobs(config.blobsFolder, deps.random),
  });
  limitConnections(app.server, config.openFilesMax, deps);
  await app.ready();
  const port = await listen(app.server, config);
  const also = await listenAlso(app.server, config, deps.log);
  return {
    url: `${config.tls ? 'https' : 'http'}://${urlHost(config.host)}:${port}`,
    inFlight: () => running.size,
    retire: () => {
      isRetiring = true;
    },
    [Symbol.asyncDispose]: async () => {
      for (const listener of also) listener.close();
      await close(app.server, running, deps.clock);
      await app.close();
    },
  };
}

async function listen(server: Server, {host, port, anyPort}: GatewayConfig): Promise<number> {
  const last = anyPort && port !== 0 ? Math.min(port + portsTriedMax, 65_535) : port;
  for (let tried = port; ; tried += 1) {
    try {
      server.listen(tried, host);
      await once(server, 'listening');
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : tried;
    } catch (cause) {
      if (hasCode(cause, 'EADDRINUSE') && tried < last) continue;
      const ports = last > port ? `ports ${port} to ${last}` : `port ${port}`;
      const message = `the gateway cannot listen on ${host}, ${ports}: ${whyNot(cause)} (gateway.host, gateway.port)`;
      throw new Fault('BAD_CONFIG', message, {cause});
    }
  }
}

/** What the commonest codes mean, and what to do. */
function whyNot(error: unknown): string {
  switch (error instanceof Error && 'code' in error ? error.code : undefined) {
    case 'EADDRINUSE':
      return 'another program listens there, perhaps another node; choose another port: --gateway HOST:PORT';
    case 'EACCES':
      return 'this user may not use that port; choose one above 1023: --gateway HOST:PORT';
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'this machine has no such address; choose one of its own: --gateway HOST:PORT';
    case undefined:
    default:
      return describeError(error);
  }
}

/** Ends running answers in their own dialect, then cuts whoever still does not let go. */
async function close(server: Server, running: ReadonlySet<AbortController>, clock: Clock): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, 'close');
  const reason = endReason();
  server.close();
  server.removeAllListeners('request');
  server.on('request', ({url = '', headers}: IncomingMessage, response: ServerResponse) => {
    sendProblem(response, shuttingDown(), errorFormFor(url, headers));
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

async function readTls({certFile, keyFile}: {readonly certFile: string; readonly keyFile: string}) {
  const [cert, key] = await Promise.all([readPem('cert', certFile), readPem('key', keyFile)]);
  try {
    createSecureContext({cert, key});
  } catch (cause) {
    const message = `gateway.tls_cert and gateway.tls_key cannot be used: ${describeError(cause)}`;
    throw new Fault('BAD_CONFIG', message, {cause});
  }
  return {cert, key};
}

async function readPem(what: 'cert' | 'key', file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new Fault('BAD_CONFIG', `gateway.tls_${what} cannot be read: ${describeError(cause)}`, {cause});
  }
}

function openToAll(host: string): Fault {
  return new Fault(
    'BAD_CONFIG',
    `the gateway has no keys, so it does not listen on ${host}, where every machine could use it; ` +
      'make one with `hearsay key create NAME` while it listens on 127.0.0.1, or set gateway.keys, or' +
      ` set gateway.insecure if you want just that`,
    {details: {host}},
  );
}
