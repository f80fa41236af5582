import type {IncomingMessage, Server, ServerResponse} from 'node:http';
import {createServer as createTlsServer} from 'node:https';
import type {Socket} from 'node:net';
import {fastify} from 'fastify';
import type {FastifyInstance} from 'fastify';
import {Fault, nameLengthMax, newRequestId} from '@hearsay/core';
import type {Random} from '@hearsay/core';
import {errorFormFor, openAiErrors} from './error-form.ts';
import {letIn} from './front-door.ts';
import type {DoorRules} from './front-door.ts';
import type {HeldBodies} from './held-bodies.ts';
import {plainPath} from './plain-path.ts';
import {badRequest, sendProblem} from './problem.ts';
import {nameRequest} from './request-headers.ts';

// An `import` of this module also loads the whole of `fetch`, which nothing here uses: 20 ms and 4 MB of every start.
const {createServer} = process.getBuiltinModule('node:http');

export interface AppConfig extends DoorRules {
  readonly random: Random;
  /** How long the head of a request may take. */
  readonly headMsMax: number;
  readonly bodyBytesMax: number;
  readonly bodies: HeldBodies;
  /** Certificate and key in PEM. */
  readonly tls: {readonly cert: Buffer; readonly key: Buffer} | undefined;
}

/** Longer than the idle time of the usual proxies in front, so that they close first and meet no closed connection. */
const keepAliveTimeout = 72_000;

/** For receiving a request, not for answering it: the largest model over a slow link. A pause ends it much sooner. */
const requestTimeout = 24 * 60 * 60_000;

/** How often slow heads are looked for, at the most: a head takes this much longer at worst. */
const checkMsMax = 15_000;

/** A model name of the longest kind with every character percent-encoded. */
const pathLengthMax = 9 * nameLengthMax;

/** Fastify behind the front door, with errors in our shape also where no route has been found. */
export function createApp(config: AppConfig): FastifyInstance {
  return fastify({
    serverFactory: handle => serverFor(config, handle),
    rewriteUrl: ({url = '/'}) => plainPath(url),
    routerOptions: {ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: pathLengthMax},
    schemaController: {compilersFactory: {buildValidator: compileNothing, buildSerializer: compileNothing}},
    frameworkErrors: ({message}, {raw}, reply) => {
      reply.hijack();
      sendProblem(reply.raw, badRequest(message, {code: 'bad_url'}), errorFormFor(raw.url ?? '', raw.headers));
    },
    clientErrorHandler: refuseNonsense,
  });
}

/** Our routes read bodies themselves; the compilers for Fastify's schemas are 170 modules that no start needs to load. */
function compileNothing(): never {
  throw new Fault('INTERNAL', 'routes have no schemas of Fastify here');
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

function serverFor(config: AppConfig, handle: Handle): Server {
  const {headMsMax, tls, random} = config;
  const options = {
    keepAliveTimeout,
    headersTimeout: headMsMax,
    requestTimeout,
    connectionsCheckingInterval: Math.min(checkMsMax, headMsMax),
    noDelay: true,
  };
  const open: Handle = (request, response) => {
    nameRequest(request, response, errorFormFor(request.url ?? '', request.headers), newRequestId(random));
    if (!letIn(request, response, config)) return;
    config.bodies.watch(request, response);
    // Clients send any content type or none (C64). Fastify would refuse some, and QUERY without one.
    delete request.headers['content-type'];
    if (request.method === 'QUERY') request.headers['content-type'] = 'text/plain';
    handle(request, response);
  };
  const server = tls ? createTlsServer({...options, ...tls}, open) : createServer(options, open);
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // What is too large anyway is better not sent at all (C22).
    if (Number(request.headers['content-length'] ?? 0) <= config.bodyBytesMax) response.writeContinue();
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response); // what else a client expects is no reason to refuse it
  });
  return server;
}

/** What comes in is not HTTP, or its head is too long or too slow: there is no request that could be answered. */
function refuseNonsense({code}: {readonly code?: string}, socket: Socket): void {
  if (!socket.writable || code === 'ECONNRESET') return void socket.destroy();
  const [status, message] = nonsense.get(code ?? '') ?? ['400 Bad Request', 'this is not an HTTP request'];
  const body = JSON.stringify(openAiErrors.body(badRequest(message, {code: 'bad_http'}), undefined));
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\nconnection: close\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const nonsense: ReadonlyMap<string, readonly [string, string]> = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', ['408 Request Timeout', 'the request did not come in time']],
  ['HPE_HEADER_OVERFLOW', ['431 Request Header Fields Too Large', 'the headers are larger than 16 KiB']],
]);
