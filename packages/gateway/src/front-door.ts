import type {IncomingMessage, ServerResponse} from 'node:http';
import {isIP} from 'node:net';
import {isLoopbackAddress, isPrivateAddress} from '@hearsay/core';
import {errorFormFor} from './error-form.ts';
import {plainPath} from './plain-path.ts';
import {sendJson, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {remembered} from './remembered.ts';

/** Who may come in through a browser. */
export interface DoorRules {
  /** Web pages of other machines that may call us: `https://chat.example`, or `*`. Those of this machine always may. */
  readonly corsOrigins: readonly string[];
  /** Names of this machine beside the usual ones; lower case. */
  readonly hostnames: readonly string[];
  /** On for a loopback listener: a foreign name that leads here is an attack (DNS rebinding) or an unknown tunnel. */
  readonly checkHost: boolean;
  /** Decides whether a request may come in; undefined: it may. */
  readonly authorise: (request: IncomingMessage) => Problem | undefined;
}

/**
 * Comes before everything else, so that every answer, also an error, carries its CORS headers (C30). False: it has
 * answered.
 */
export function letIn(request: IncomingMessage, response: ServerResponse, rules: DoorRules): boolean {
  const {origin, host = ''} = request.headers;
  const isWelcome = origin === undefined || isAllowedOrigin(origin, host, rules);
  if (origin !== undefined) addCorsHeaders(response, isWelcome ? origin : undefined);
  if (request.method === 'OPTIONS') {
    answerPreflight(request, response);
    return false;
  }
  const problem = hostProblem(host, rules) ?? (isWelcome ? rules.authorise(request) : foreignOrigin(origin));
  if (problem === undefined) return true;
  if (problem.status === 401 && isHealthCheck(request)) sendJson(response, 200, {status: 'ok'});
  else sendProblem(response, problem, errorFormFor(request.url ?? '', request.headers));
  return false;
}

/** What restarts a program that hangs has no key; it learns that this one lives, and nothing else (as llama-server). */
function isHealthCheck({method, url = ''}: IncomingMessage): boolean {
  return (method === 'GET' || method === 'HEAD') && /^(?:\/v1)?\/health$/u.test(plainPath(url).split('?', 1)[0] ?? '');
}

function hostProblem(host: string, {checkHost, hostnames}: DoorRules): Problem | undefined {
  if (host === '') return undefined; // HTTP/1.0, as some health checks speak it; a browser always says where it is
  return checkHost && !isAllowedHost(host, hostnames) ? foreignHost(host) : undefined;
}

/** Pure: whether a Host header names this machine and not something that merely leads here. */
export function isAllowedHost(host: string, hostnames: readonly string[]): boolean {
  return isUsualHost(host) || hostnames.includes(hostName(host));
}

const isUsualHost = remembered(host => {
  const name = hostName(host);
  // No foreign DNS name hides behind an address of this machine or of a private network.
  if (isIP(name) !== 0) return isLoopbackAddress(name) || isPrivateAddress(name) || name === '0.0.0.0';
  return name === 'localhost' || /\.(?:localhost|local|internal)$/u.test(name);
});

/** Pure: pages of this machine, pages that come from the very host they call, and those that the owner lists. */
export function isAllowedOrigin(
  origin: string,
  host: string,
  {corsOrigins, hostnames}: Pick<DoorRules, 'corsOrigins' | 'hostnames'>,
): boolean {
  if (corsOrigins.includes('*') || corsOrigins.includes(origin)) return true;
  if (appOrigin.test(origin)) return true;
  const match = /^https?:\/\/([^/]+)$/u.exec(origin);
  const from = match?.[1];
  if (from === undefined) return false;
  const name = hostName(from);
  const isHere = name === 'localhost' || name.endsWith('.localhost') || name === '0.0.0.0' || isLoopback(name);
  return isHere || (from === host && isAllowedHost(host, hostnames));
}

/** Desktop programs that are web pages inside: what runs them was installed here, and no web site can send these. */
const appOrigin = /^(?:app|file|tauri|vscode-webview|vscode-file):\/\//u;

/** Pure: `localhost`, 127.0.0.0/8 and ::1. */
export function isLoopback(host: string): boolean {
  const name = hostName(host);
  return name === 'localhost' || (isIP(name) !== 0 && isLoopbackAddress(name));
}

/** The host without its port and brackets, in lower case and without a final dot. */
function hostName(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/u.exec(host);
  const name = bracketed?.[1] ?? (isIP(host) === 6 ? host : host.replace(/:\d*$/u, ''));
  return name.toLowerCase().replace(/\.$/u, '');
}

/** In the letters in which llama-server writes these names, for clients that compare them as they come. */
function addCorsHeaders(response: ServerResponse, origin: string | undefined): void {
  response.setHeader('vary', 'Origin');
  if (origin === undefined) return;
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Access-Control-Allow-Credentials', 'true'); // pages that ask with cookies would get nothing else
  response.setHeader('Access-Control-Expose-Headers', exposedHeaders);
}

const exposedHeaders =
  'x-request-id, request-id, retry-after, x-should-retry, x-hearsay-request, x-hearsay-node, x-hearsay-model, ' +
  'x-hearsay-attempts, x-hearsay-policy, x-hearsay-reason';

/** Ollama and OpenAI answer a preflight with 204, llama-server on its own paths with 200, and its tests want that. */
const ownPath = /^\/(?!v1\/|api\/)/u;

/** Allows whatever headers the browser asks for: which page asks is what matters. HEAD needs no permission. */
function answerPreflight(request: IncomingMessage, response: ServerResponse): void {
  const wanted = request.headers['access-control-request-headers'];
  response.writeHead(ownPath.test(request.url ?? '') ? 200 : 204, {
    allow: 'GET, HEAD, POST, DELETE, OPTIONS',
    'Access-Control-Allow-Methods': 'GET, POST, DELETE, OPTIONS',
    'Access-Control-Allow-Headers': wanted ?? 'authorization, content-type, x-hearsay-policy, x-request-id',
    'Access-Control-Max-Age': '86400',
    ...(request.headers['access-control-request-private-network'] === 'true'
      ? {'Access-Control-Allow-Private-Network': 'true'}
      : {}),
  });
  response.end();
}

function foreignHost(host: string): Problem {
  return forbidden(
    'host_not_allowed',
    `the Host header ${shown(host)} is not a name of this machine; if it is one, add it to gateway.hostnames`,
  );
}

function foreignOrigin(origin: string): Problem {
  return forbidden(
    'origin_not_allowed',
    `web pages of ${shown(origin)} may not call this node; to allow it, add the origin to gateway.cors_origins`,
  );
}

function forbidden(code: string, message: string): Problem {
  return {kind: 'problem', status: 403, type: 'permission_error', code, message};
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
