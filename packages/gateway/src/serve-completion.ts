import type {IncomingMessage, ServerResponse} from 'node:http';
import {describeError, Fault, newRequestId} from '@hearsay/core';
import type {Answer, Cluster, Endpoint, Environment, RequestId} from '@hearsay/core';
import {consume, endQuietly, readText, untilAborted} from './consume.ts';
import {callerIn} from './identify.ts';
import {ObjectReply} from './object-reply.ts';
import {isProblem, problemFrom, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {readBody} from './read-body.ts';
import {readCompletion} from './read-completion.ts';
import type {CompletionCall} from './read-completion.ts';
import {runHeaders} from './reply.ts';
import type {Reply} from './reply.ts';
import {StreamReply} from './stream-reply.ts';
import type {StreamReplyConfig} from './stream-reply.ts';
import {problemFromUpstream} from './upstream-problem.ts';

export interface CompletionService extends Environment, StreamReplyConfig {
  readonly cluster: Cluster;
  /** Every request that is being read or answered; aborting one ends it with the reason. */
  readonly running: Set<AbortController>;
}

/** Largest error body that is read from llama-server. */
const errorBytesMax = 1024 * 1024;

/**
 * Serves one completion from its first to its last byte. Every way out ends the run: the answer was whole, it broke,
 * or the client went away; the latter also while it uploads and while it waits for a node.
 */
export async function serveCompletion(
  request: IncomingMessage,
  response: ServerResponse,
  endpoint: Endpoint,
  service: CompletionService,
): Promise<void> {
  const {running} = service;
  const id = newRequestId(service.random);
  const controller = new AbortController();
  running.add(controller);
  response.on('error', () => {}); // 'close' follows and says the same
  response.once('close', () => {
    if (running.has(controller)) controller.abort(new Fault('CANCELLED', 'the client went away'));
  });
  response.setHeader('x-hearsay-request', id);
  response.setHeader('x-request-id', clientId(request) ?? id);
  try {
    const call = await untilAborted(readCall(request, {id, endpoint}, service), controller.signal);
    if (call.kind === 'problem') return sendProblem(response, call);
    await answer(call, response, service, controller.signal);
  } catch (error) {
    note(error, id, service);
    if (!response.destroyed) sendProblem(response, problemFrom(error));
  } finally {
    running.delete(controller);
  }
}

/** Reads and parses the body once; from here on it is bytes again. */
async function readCall(
  request: IncomingMessage,
  {id, endpoint}: {readonly id: RequestId; readonly endpoint: Endpoint},
  {clock}: CompletionService,
): Promise<CompletionCall | Problem> {
  const bytes = await readBody(request, clock);
  if (isProblem(bytes)) return bytes;
  const policy = headerOf(request, 'x-hearsay-policy');
  const traceparent = headerOf(request, 'traceparent');
  return readCompletion(bytes, {id, endpoint, policy, traceparent, caller: callerIn(request)});
}

async function answer(
  call: CompletionCall,
  response: ServerResponse,
  service: CompletionService,
  signal: AbortSignal,
): Promise<void> {
  using reply: Reply = call.stream
    ? new StreamReply(response, service.clock, service)
    : new ObjectReply(response, call.request.endpoint);
  try {
    const given = await untilAborted(service.cluster.dispatch(call.request, signal), signal, discard);
    describeRun(given, response);
    const problem = await problemIn(given, signal);
    if (problem) return reply.fail(problem);
    await consume(given.body, chunk => reply.write(chunk), signal);
    reply.end();
  } catch (error) {
    note(error, call.request.id, service);
    reply.fail(problemFrom(error));
  }
}

/** What ran, for the client; too late when it has been kept waiting with comments. */
function describeRun({run}: Answer, response: ServerResponse): void {
  if (response.headersSent) return;
  for (const [name, value] of Object.entries(runHeaders(run))) response.setHeader(name, value);
}

/** llama-server's own no, which is the client's answer (R24); or an answer that is no stream. */
async function problemIn({status, contentType, body}: Answer, signal: AbortSignal): Promise<Problem | undefined> {
  if (status === 200 && contentType.startsWith('text/event-stream')) return undefined;
  const text = await readText(body, errorBytesMax, signal);
  if (status !== 200) return problemFromUpstream(status, text);
  throw new Fault('ENGINE_FAILED', `the engine answered ${contentType || 'something'} instead of an event stream`);
}

/** An answer that came after its client had gone. */
function discard({body}: Answer): void {
  endQuietly(body[Symbol.asyncIterator]());
}

/** Failures are answers to the client; only a bug of ours is news to the owner of this machine. */
function note(error: unknown, request: RequestId, {log}: CompletionService): void {
  if (error instanceof Fault && error.code !== 'INTERNAL') {
    log('debug', 'a request failed', {request, code: error.code, message: describeError(error)});
  } else {
    log('error', 'a bug made a request fail', {request, error});
  }
}

/** The client's own id, when it is one that may stand in a header and a log. */
function clientId(request: IncomingMessage): string | undefined {
  const id = headerOf(request, 'x-request-id');
  return id !== undefined && /^[\w.-]{1,128}$/u.test(id) ? id : undefined;
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
