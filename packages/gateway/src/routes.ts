import type {ServerResponse} from 'node:http';
import type {FastifyInstance, FastifyReply, FastifyRequest} from 'fastify';
import type {Clock, Endpoint, MeshAdmin, StatusReport} from '@hearsay/core';
import {noteFailure} from './attend.ts';
import type {RunService} from './attend.ts';
import {countTokens} from './count-tokens.ts';
import {messages} from './read-messages.ts';
import {byModel, lookAt, native, withoutFolders} from './read-native.ts';
import {plain} from './read-plain.ts';
import {responses} from './read-responses.ts';
import {transcription} from './read-transcription.ts';
import {completion} from './read-completion.ts';
import {errorFormFor} from './error-form.ts';
import {eventsRoute} from './events-route.ts';
import {controlRoutes} from './control-routes.ts';
import type {JsonObject} from './json.ts';
import {mayAdminister} from './identify.ts';
import {journalRoutes} from './journal-routes.ts';
import {keyRoutes} from './key-routes.ts';
import type {KeyRing} from './key-ring.ts';
import {operatorRoutes} from './operator-routes.ts';
import {visibleEngines, visibleModels} from './visible-models.ts';
import {wildcard} from './wildcard.ts';
import {allowedAt, unknownPath, wrongMethod} from './wrong-path.ts';
import {findModel, listModels} from './list-models.ts';
import {meshRoutes} from './mesh-routes.ts';
import {Metrics} from './metrics.ts';
import {isProblem, problemFrom, sendJson, sendProblem, shuttingDown} from './problem.ts';
import type {Problem} from './problem.ts';
import type {Operation} from './operation.ts';
import {frontPage} from './front-page.ts';
import {givenNames, modelBehind} from './ollama/find-model.ts';
import {ollamaRoutes} from './ollama/routes.ts';
import {serveRun} from './serve-run.ts';

export interface RouteService extends RunService {
  readonly status: () => StatusReport;
  /** The context of an engine that this node would start. */
  readonly contextTokens: number | undefined;
  readonly mesh?: MeshAdmin | undefined;
  readonly openApi?: (() => Promise<JsonObject>) | undefined;
  /** Undefined: this gateway has no keys of applications. */
  readonly keyRing?: KeyRing | undefined;
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
type Method = (typeof methods)[number];

/** Undefined, or nothing: it has been sent already. */
type Answered = JsonObject | Problem | Promise<JsonObject | Problem | undefined> | Promise<void>;

/** One method of one or more paths. A GET serves HEAD too, unless the path has a HEAD of its own. */
export interface Route {
  readonly method: Method;
  /** Every spelling; the first is the one that people are told. */
  readonly paths: readonly string[];
  /** Changes what all clients have: an application needs a key that says so. All of the admin API is like that. */
  readonly needsAdmin?: boolean;
  readonly handle: (request: FastifyRequest, reply: FastifyReply) => Answered;
}

/** Everything that the gateway serves. */
export function addRoutes(app: FastifyInstance, service: RouteService): void {
  app.addContentTypeParser('*', (_request, _payload, done) => done(null)); // handlers read bodies themselves
  const metrics = new Metrics();
  const routes = [
    ...openAiRoutes(service),
    ...llamaRoutes(service),
    ...ollamaRoutes(service),
    ...adminRoutes(service),
    metricsRoute(metrics, service),
    ...meshRoutes(service),
    ...ownerRoutes(service),
    frontPage(service),
  ];
  const allowed = new Map<string, string>();
  for (const [url, here] of byPath(routes)) {
    allowed.set(url, allowedMethods(here));
    for (const route of here) {
      app.route({
        method: servedMethods(route, here),
        url,
        exposeHeadRoute: false,
        handler: (request, reply) => {
          measure(route, reply.raw, metrics, service.clock);
          return run(route, request, reply);
        },
      });
    }
  }
  const known = routes.map(({method, paths: [path = '']}) => `${method} ${path.replace('*', '{id}')}`);
  // Also for the methods that a path does not take: to register those costs more than all that it serves.
  app.setNotFoundHandler((request, reply) => {
    const methodsHere = allowedAt(request.url, allowed);
    const wrong = methodsHere === undefined ? unknownPath(request, known) : wrongMethod(request, methodsHere);
    finish(request, reply, wrong);
  });
  app.setErrorHandler((error, request, reply) => {
    noteFailure(error, {path: request.routeOptions.url ?? ''}, service);
    finish(request, reply, problemFrom(error));
  });
}

function openAiRoutes(service: RouteService): readonly Route[] {
  const {cluster, startedSeconds} = service;
  return [
    engineRoute(both('/chat/completions'), completion('/v1/chat/completions'), service),
    engineRoute(['/v1/completions'], completion('/v1/completions'), service),
    engineRoute(both('/responses'), responses, service),
    engineRoute(
      both('/responses/input_tokens'),
      plain('/v1/responses/input_tokens', {needs: ['chat'], fields: ['input']}),
      service,
    ),
    engineRoute(
      both('/chat/completions/input_tokens'),
      plain('/v1/chat/completions/input_tokens', {needs: ['chat'], fields: ['messages']}),
      service,
    ),
    engineRoute(['/v1/embeddings'], embeddings, service),
    engineRoute(
      [...both('/rerank'), ...both('/reranking')],
      plain('/v1/rerank', {needs: ['rerank'], fields: ['query', ['documents', 'texts']]}),
      service,
    ),
    engineRoute(both('/audio/transcriptions'), transcription, service),
    engineRoute(both('/messages'), messages, service),
    {
      method: 'POST',
      paths: both('/messages/count_tokens'),
      handle: ({raw}, reply) => countTokens(raw, reply.raw, service),
    },
    {
      method: 'GET',
      paths: both('/models'),
      handle: ({raw}) => listModels(visibleModels(cluster, raw), startedSeconds, givenNames(service)),
    },
    {
      method: 'GET',
      paths: both('/models/*'),
      handle: request => {
        const asked = wildcard(request);
        const models = visibleModels(cluster, request.raw);
        const model = findModel(modelBehind(asked, service), models, startedSeconds);
        return isProblem(model) ? model : {...model, ...(Object.hasOwn(givenNames(service), asked) ? {id: asked} : {})};
      },
    },
    {
      method: 'GET',
      paths: ['/health', '/v1/health'],
      handle: () => health(service.status()),
    },
    {method: 'GET', paths: ['/ready'], handle: () => ready(service)},
  ];
}

/** llama-server's own API, so that its clients and its tests work here too. */
function llamaRoutes(service: RouteService): readonly Route[] {
  const text = native('/completion');
  const vectors = plain('/embedding', {needs: ['embeddings'], fields: [['input', 'content']], isFilled: true});
  return [
    engineRoute(['/completion'], text, service),
    engineRoute(['/completions'], byModel(completion('/v1/completions'), text), service),
    engineRoute(['/infill'], native('/infill'), service),
    engineRoute(['/embedding'], vectors, service),
    engineRoute(['/embeddings'], byModel(embeddings, vectors), service),
    engineRoute(['/tokenize'], plain('/tokenize', {needs: [], fields: []}), service),
    engineRoute(['/detokenize'], plain('/detokenize', {needs: [], fields: []}), service),
    engineRoute(['/apply-template'], plain('/apply-template', {needs: ['chat'], fields: ['messages']}), service),
    lookRoute('/props', service, withoutFolders),
    lookRoute('/slots', service),
    lookRoute('/lora-adapters', service),
  ];
}

function lookRoute(path: Endpoint, service: RunService, rewrite?: (answer: JsonObject) => JsonObject): Route {
  const operation = lookAt(path, rewrite);
  return {method: 'GET', paths: [path], handle: ({raw}, reply) => serveRun(raw, reply.raw, operation, service)};
}

const embeddings = plain('/v1/embeddings', {needs: ['embeddings'], fields: ['input'], isFilled: true});

/** Some clients are told the base URL without `/v1`. */
function both(path: string): readonly string[] {
  return [`/v1${path}`, path];
}

/** A request that some engine answers. */
function engineRoute(paths: readonly string[], operation: Operation, service: RunService): Route {
  return {method: 'POST', paths, handle: ({raw}, reply) => serveRun(raw, reply.raw, operation, service)};
}

function adminRoutes(service: RouteService): readonly Route[] {
  const {cluster, status} = service;
  return [
    {method: 'GET', paths: ['/hearsay/v1/status'], handle: () => ({...status()})},
    {method: 'GET', paths: ['/hearsay/v1/nodes'], handle: () => ({nodes: cluster.nodes()})},
    {method: 'GET', paths: ['/hearsay/v1/engines'], handle: () => ({engines: cluster.engines()})},
    {method: 'GET', paths: ['/hearsay/v1/models'], handle: () => ({models: cluster.models()})},
    ...controlRoutes(service),
  ];
}

/** For Prometheus, which asks again and again: nothing here wakes a model (R16). */
function metricsRoute(metrics: Metrics, {cluster, status, running}: RouteService): Route {
  return {
    method: 'GET',
    paths: ['/metrics'],
    handle: async ({raw: request}, {raw}) => {
      const seen = {
        nodes: cluster.nodes(),
        engines: visibleEngines(cluster, request),
        models: visibleModels(cluster, request),
      };
      const bytes = Buffer.from(metrics.text(seen, status(), running.size));
      const type = 'text/plain; version=0.0.4; charset=utf-8';
      raw.writeHead(200, {'content-type': type, 'content-length': bytes.length}).end(bytes);
    },
  };
}

/** Counts the answer when it has ended, or when its client has left. */
function measure({paths}: Route, response: ServerResponse, metrics: Metrics, clock: Clock): void {
  const startedMs = clock.monotonicMs();
  response.once('close', () => {
    const status = response.writableFinished ? response.statusCode : 499;
    metrics.note(paths[0] ?? '', status, (clock.monotonicMs() - startedMs) / 1000);
  });
}

function byPath(routes: readonly Route[]): ReadonlyMap<string, readonly Route[]> {
  const paths = new Map<string, Route[]>();
  for (const route of routes) {
    for (const path of route.paths) {
      const here = paths.get(path);
      if (here) here.push(route);
      else paths.set(path, [route]);
    }
  }
  return paths;
}

/** HEAD is answered as GET; Node leaves the body out. */
function servedMethods({method}: Route, here: readonly Route[]): Method[] {
  return method === 'GET' && !here.some(each => each.method === 'HEAD') ? ['GET', 'HEAD'] : [method];
}

function allowedMethods(here: readonly Route[]): string {
  const served = new Set(here.flatMap(route => servedMethods(route, here)));
  return [...methods.filter(method => served.has(method)), 'OPTIONS'].join(', ');
}

/** Fastify finds the way; every answer is written here, so that all errors have their dialect's shape. */
async function run(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const answer = isOutOfRights(route, request) ?? (await route.handle(request, reply));
  if (answer === undefined) reply.hijack();
  else finish(request, reply, answer);
}

/** What the owner of the node asks and says. */
function ownerRoutes(service: RouteService): readonly Route[] {
  const {cluster, keyRing, openApi} = service;
  const keys = keyRing ? keyRoutes(keyRing, service) : [];
  const told: Route = {
    method: 'GET',
    paths: ['/hearsay/v1/openapi.json'],
    handle: async () => (await openApi?.()) ?? {},
  };
  return [told, eventsRoute(service), ...journalRoutes(cluster), ...operatorRoutes(cluster, service), ...keys];
}

/** The admin API is the owner's; an application needs a key that says so. */
function isOutOfRights({paths, needsAdmin}: Route, {raw}: FastifyRequest): Problem | undefined {
  const isOpen = needsAdmin !== true && paths[0]?.startsWith('/hearsay/') !== true;
  if (isOpen || mayAdminister(raw)) return undefined;
  const message = 'this key lacks a right that this request needs: admin';
  return {kind: 'problem', status: 403, type: 'permission_error', code: 'forbidden', message};
}

function finish({raw}: FastifyRequest, reply: FastifyReply, answer: JsonObject | Problem): void {
  reply.hijack();
  if (reply.raw.headersSent || reply.raw.destroyed) return;
  if (isProblem(answer)) sendProblem(reply.raw, answer, errorFormFor(raw.url ?? '', raw.headers));
  else sendJson(reply.raw, 200, answer);
}

function health({name, id, version, peers, models, loaded, inFlight}: StatusReport): JsonObject {
  return {status: 'ok', node: name, id, version, peers, models, loaded, in_flight: inFlight};
}

/** Whether sending a request here makes sense now: this node or another has a model that can be used. */
function ready({cluster, isRetiring}: RouteService): JsonObject | Problem {
  if (isRetiring?.() === true) return shuttingDown();
  const models = cluster.models().filter(({problem}) => problem === undefined).length;
  if (models > 0) return {status: 'ready', models};
  const message = 'neither this node nor any that it reaches has a model that can be used';
  const headers = {'retry-after': '1'};
  return {kind: 'problem', status: 503, type: 'server_error', code: 'no_candidate', message, headers};
}
