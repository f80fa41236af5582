import type {IncomingMessage, ServerResponse} from 'node:http';
import {ollamaErrors} from '../error-form.ts';
import {callerIn} from '../identify.ts';
import type {JsonObject} from '../json.ts';
import {badRequest, isProblem, sendJson} from '../problem.ts';
import type {Problem} from '../problem.ts';
import {readBody} from '../read-body.ts';
import {headerOf} from '../request-headers.ts';
import type {Route, RouteService} from '../routes.ts';
import {serveRun} from '../serve-run.ts';
import {visibleEngines, visibleModel, visibleModels} from '../visible-models.ts';
import {ollamaEmbed} from './embed.ts';
import {modelFinder} from './find-model.ts';
import {modelOf} from './known-model.ts';
import type {FindModel, KnownModel} from './known-model.ts';
import {listRunning, listTags, ollamaVersion, showModel} from './lists.ts';
import {pullProgress, readCopy, readCreation, readDeletion} from './manage.ts';
import type {Progress} from './manage.ts';
import {offerBlob} from './offer-blob.ts';
import {ollamaRun, readJsonBody} from './run-operations.ts';
import type {OllamaService} from './run-operations.ts';

/** Ollama's API (facts: client-apis §1). */
export function ollamaRoutes(service: RouteService): readonly Route[] {
  const ollama: OllamaService = {...service, find: modelFinder(service.cluster, service.presets, service.aliases)};
  return [
    engineRoute('/api/chat', ollamaRun('chat', ollama), service),
    engineRoute('/api/generate', ollamaRun('generate', ollama), service),
    engineRoute('/api/embed', ollamaEmbed('embed', ollama), service),
    engineRoute('/api/embeddings', ollamaEmbed('embeddings', ollama), service),
    ...lists(service, ollama),
    ...management(service, ollama),
  ];
}

function engineRoute(path: string, operation: Parameters<typeof serveRun>[2], service: RouteService): Route {
  return {method: 'POST', paths: [path], handle: ({raw}, reply) => serveRun(raw, reply.raw, operation, service)};
}

/** What is known is told at once: no list waits for another node (R34, R16). */
function lists(service: RouteService, {find}: OllamaService): readonly Route[] {
  const {cluster, clock, presets, startedSeconds, status} = service;
  const startedWallMs = startedSeconds * 1000;
  const now = (): number => clock.wallMs();
  const findFor = (request: IncomingMessage): FindModel => {
    const caller = callerIn(request);
    if (caller === undefined) return find;
    return name => {
      const model = find(name);
      if (model === undefined) return undefined;
      const report = visibleModel(model.report, cluster, caller);
      return report && {...model, report};
    };
  };
  return [
    {
      method: 'GET',
      paths: ['/api/version'],
      handle: () => ({version: ollamaVersion, hearsay: status().version}),
    },
    {
      method: 'GET',
      paths: ['/api/tags'],
      handle: ({raw}) => listTags(visibleModels(cluster, raw), presets.list(), findFor(raw), startedWallMs),
    },
    {
      method: 'GET',
      paths: ['/api/ps'],
      handle: ({raw}) => listRunning(visibleEngines(cluster, raw), visibleModels(cluster, raw), cluster.nodes(), now()),
    },
    {
      method: 'POST',
      paths: ['/api/show'],
      handle: async ({raw}) => {
        const body = await bodyOf(raw, service);
        const model = isProblem(body) ? body : modelOf(body.body, findFor(raw));
        if (isProblem(model)) return model;
        return showModel(model, usableContext(model, service), {
          modifiedWallMs: model.preset?.madeWallMs || startedWallMs,
          isCopilot: (headerOf(raw, 'user-agent') ?? '').startsWith('GitHubCopilotChat/'),
        });
      },
    },
  ];
}

/** What one request gets: of an engine that runs, else of one that this node would start. */
function usableContext({report}: KnownModel, {cluster, contextTokens}: RouteService): number {
  const loaded = cluster.engines().filter(({digest, context}) => digest === report.digest && context > 0);
  const usable = loaded.length > 0 ? Math.max(...loaded.map(({context}) => context)) : contextTokens;
  const {contextMax} = report;
  return contextMax > 0 ? Math.min(usable ?? contextMax, contextMax) : (usable ?? 0);
}

function management(service: RouteService, {find}: OllamaService): readonly Route[] {
  const {clock, presets} = service;
  return [
    {
      method: 'POST',
      paths: ['/api/pull'],
      needsAdmin: true,
      handle: async ({raw}, reply) => {
        const body = await bodyOf(raw, service);
        if (isProblem(body)) return body;
        return sendProgress(reply.raw, body.body, pullProgress(body.body, find));
      },
    },
    {
      method: 'POST',
      paths: ['/api/create'],
      needsAdmin: true,
      handle: async ({raw}, reply) => {
        const body = await bodyOf(raw, service);
        if (isProblem(body)) return body;
        const read = (): ReturnType<typeof readCreation> => readCreation(body.body, find, clock.wallMs());
        const first = read();
        const isUnknown = isProblem(first) && first.code === 'model_not_found';
        const refused = isUnknown ? await offerBlob(body.body, find, service) : undefined;
        const creation = refused ?? (isUnknown ? read() : first);
        if (isProblem(creation)) return creation;
        await presets.put(creation.preset);
        return sendProgress(reply.raw, body.body, {kind: 'progress', lines: creation.lines});
      },
    },
    {
      method: 'POST',
      paths: ['/api/copy'],
      needsAdmin: true,
      handle: async ({raw}, reply) => {
        const body = await bodyOf(raw, service);
        const preset = isProblem(body) ? body : readCopy(body.body, find, clock.wallMs());
        if (isProblem(preset)) return preset;
        await presets.put(preset);
        return sendNothing(reply.raw);
      },
    },
    {
      method: 'DELETE',
      paths: ['/api/delete'],
      needsAdmin: true,
      handle: async ({raw}, reply) => {
        const body = await bodyOf(raw, service);
        const preset = isProblem(body) ? body : readDeletion(body.body, find);
        if (isProblem(preset)) return preset;
        await presets.remove(preset.name);
        return sendNothing(reply.raw);
      },
    },
    {
      method: 'HEAD',
      paths: ['/api/blobs/*'],
      handle: async ({raw}, reply) => {
        const digest = blobIn(raw);
        const isHere = find(digest) !== undefined || (await service.blobs.has(digest));
        reply.raw.writeHead(isHere ? 200 : 404, {'content-length': 0}).end();
      },
    },
    {
      method: 'POST',
      paths: ['/api/blobs/*'],
      needsAdmin: true,
      handle: async ({raw}, reply) => {
        const digest = blobIn(raw);
        if (find(digest) || (await service.blobs.has(digest))) return sendNothing(reply.raw);
        const begin = (): void => {
          if (waitsToGoOn(raw, service)) reply.raw.writeContinue();
        };
        return (await service.blobs.receive(digest, raw, begin)) ?? sendNothing(reply.raw, 201);
      },
    },
    {
      method: 'POST',
      paths: ['/api/push'],
      handle: () => badRequest('push is not supported by this server', {status: 501, code: 'unsupported'}),
    },
  ];
}

/** The digest at the end of the path. */
function blobIn({url = ''}: IncomingMessage): string {
  const digest = /\/(sha256[:-][0-9a-f]{64})(?:\?|$)/u.exec(url)?.[1];
  return digest?.replace('-', ':') ?? 'no digest';
}

/** The door lets those go on by itself that no limit of bodies stops; files of models are larger. */
function waitsToGoOn({headers}: IncomingMessage, {bodyBytesMax}: RouteService): boolean {
  return headers.expect?.toLowerCase() === '100-continue' && Number(headers['content-length'] ?? 0) > bodyBytesMax;
}

async function bodyOf(request: IncomingMessage, service: RouteService): Promise<ReturnType<typeof readJsonBody>> {
  const bytes = await readBody(request, service);
  return isProblem(bytes) ? bytes : readJsonBody(bytes);
}

/**
 * Line by line unless the client wants only the last one. As with Ollama, what the client did wrong is told before
 * anything begins, and what goes wrong later in a line of the stream.
 */
function sendProgress(
  response: ServerResponse,
  {stream}: JsonObject,
  progress: Progress | Problem,
): undefined | Problem {
  if (isProblem(progress) && progress.status < 500) return progress;
  const last = isProblem(progress) ? undefined : progress.lines.at(-1);
  if (stream === false) {
    if (isProblem(progress)) return progress;
    sendJson(response, 200, last ?? {});
    return undefined;
  }
  const lines = isProblem(progress) ? [ollamaErrors.body(progress, undefined)] : progress.lines;
  response.writeHead(200, {'content-type': 'application/x-ndjson', 'x-accel-buffering': 'no'});
  response.end(lines.map(line => `${JSON.stringify(line)}\n`).join(''));
  return undefined;
}

function sendNothing(response: ServerResponse, status: number = 200): undefined {
  response.writeHead(status, {'content-length': 0});
  response.end();
  return undefined;
}
