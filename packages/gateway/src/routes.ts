import type {FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods} from 'fastify';
import type {StatusReport} from '@hearsay/core';
import {journalRoutes} from './journal-routes.ts';
import {parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {mayAdminister} from './identify.ts';
import {keyRoutes} from './key-routes.ts';
import type {KeyRing} from './key-ring.ts';
import {findModel, listModels} from './list-models.ts';
import {operatorRoutes} from './operator-routes.ts';
import {badRequest, isProblem, problemFrom, sendJson, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {readBody} from './read-body.ts';
import {wildcard} from './route.ts';
import type {Route} from './route.ts';
import {serveCompletion} from './serve-completion.ts';
import type {CompletionService} from './serve-completion.ts';

export interface RouteService extends CompletionService {
  readonly status: () => StatusReport;
  /** When the gateway started; models have no date of their own. */
  readonly startedSeconds: number;
  /** Undefined: this gateway has no keys. */
  readonly keys?: KeyRing | undefined;
}

/** Everything that the gateway serves. */
export function addRoutes(app: FastifyInstance, service: RouteService): void {
  app.addContentTypeParser('*', (_request, _payload, done) => done(null)); // handlers read bodies themselves
  const routes = [
    ...openAiRoutes(service),
    ...adminRoutes(service),
    ...journalRoutes(service.cluster),
    ...operatorRoutes(service.cluster, service.clock),
    ...(service.keys ? keyRoutes(service.keys, service.clock) : []),
    frontPage,
  ];
  for (const route of routes) {
    for (const path of route.paths) {
      app.route({method: route.method, url: path, handler: (request, reply) => run(route, request, reply)});
      app.route({
        method: methodsBut(route.method),
        url: path,
        handler: (request, reply) => finish(reply, wrongMethod(request, route)),
      });
    }
  }
  const known = routes.map(({method, paths}) => `${method} ${paths[0]?.replace('*', '{id}')}`).join(', ');
  app.setNotFoundHandler((request, reply) => finish(reply, unknownPath(request, known)));
  app.setErrorHandler((error, request, reply) => {
    service.log('error', 'a bug made a request fail', {path: request.routeOptions.url, error});
    finish(reply, problemFrom(error));
  });
}

function openAiRoutes(service: RouteService): readonly Route[] {
  const {cluster, startedSeconds} = service;
  return [
    {
      method: 'POST',
      paths: ['/v1/chat/completions', '/chat/completions'],
      handle: ({raw}, reply) => serveCompletion(raw, reply.raw, '/v1/chat/completions', service),
    },
    {
      method: 'POST',
      paths: ['/v1/completions', '/completions'],
      handle: ({raw}, reply) => serveCompletion(raw, reply.raw, '/v1/completions', service),
    },
    {
      method: 'GET',
      paths: ['/v1/models', '/models'],
      handle: () => listModels(cluster.models(), startedSeconds),
    },
    {
      method: 'GET',
      paths: ['/v1/models/*', '/models/*'],
      handle: request => findModel(wildcard(request), cluster.models(), startedSeconds),
    },
    {
      method: 'GET',
      paths: ['/health', '/v1/health'],
      handle: () => health(service.status()),
    },
  ];
}

function adminRoutes({cluster, clock, status}: RouteService): readonly Route[] {
  return [
    {method: 'GET', paths: ['/hearsay/v1/status'], handle: () => ({...status()})},
    {method: 'GET', paths: ['/hearsay/v1/nodes'], handle: () => ({nodes: cluster.nodes()})},
    {method: 'GET', paths: ['/hearsay/v1/engines'], handle: () => ({engines: cluster.engines()})},
    {method: 'GET', paths: ['/hearsay/v1/models'], handle: () => ({models: cluster.models()})},
    {
      method: 'POST',
      paths: ['/hearsay/v1/stop'],
      handle: async ({raw}) => {
        const bytes = await readBody(raw, clock);
        if (isProblem(bytes)) return bytes;
        const model = parseObject(new TextDecoder().decode(bytes))?.['model'];
        if (typeof model !== 'string' || model === '') return badRequest('model is missing', {param: 'model'});
        return {stopped: await cluster.stop(model)};
      },
    },
  ];
}

/** For people, and for the "test connection" buttons of clients. */
const frontPage: Route = {
  method: 'GET',
  paths: ['/'],
  handle: async ({headers}, {raw}) => {
    const url = `http://${headers.host}`;
    const text = `hearsay is running\n\nOpenAI base URL: ${url}/v1\nModels: ${url}/v1/models\n`;
    raw.writeHead(200, {'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(text)});
    raw.end(text);
  },
};

/** Fastify finds the way; every answer is written here, so that all errors have one shape. */
async function run(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const answer = isOutOfRights(route, request) ?? (await route.handle(request, reply));
  if (answer === undefined) reply.hijack();
  else finish(reply, answer);
}

/** The admin API is the owner's; an application needs a key that says so. */
function isOutOfRights({paths}: Route, {raw}: FastifyRequest): Problem | undefined {
  if (paths[0]?.startsWith('/hearsay/') !== true || mayAdminister(raw)) return undefined;
  const message = 'this key lacks a right that this request needs: admin';
  return {kind: 'problem', status: 403, type: 'permission_error', code: 'forbidden', message};
}

function finish(reply: FastifyReply, answer: JsonObject | Problem): void {
  reply.hijack();
  if (reply.raw.headersSent || reply.raw.destroyed) return;
  if (isProblem(answer)) sendProblem(reply.raw, answer);
  else sendJson(reply.raw, 200, answer);
}

function health({name, id, version, peers, models, loaded, inFlight}: StatusReport): JsonObject {
  return {status: 'ok', node: name, id, version, peers, models, loaded, in_flight: inFlight};
}

function methodsBut(method: 'GET' | 'POST'): HTTPMethods[] {
  return method === 'GET' ? ['POST', 'PUT', 'PATCH', 'DELETE'] : ['GET', 'PUT', 'PATCH', 'DELETE'];
}

function wrongMethod({method}: FastifyRequest, route: Route): Problem {
  return badRequest(`${method} is not possible here; use ${route.method}`, {
    status: 405,
    code: 'method_not_allowed',
    headers: {allow: route.method === 'GET' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS'},
  });
}

function unknownPath({method, url}: FastifyRequest, known: string): Problem {
  const path = url.split('?', 1)[0]?.slice(0, 200) ?? '';
  return badRequest(`${method} ${path} does not exist; hearsay serves ${known}`, {status: 404, code: 'not_found'});
}
