import type {IncomingMessage, ServerResponse} from 'node:http';
import {describeError, Fault, newRequestId} from '@hearsay/core';
import type {Answer, Cluster, Environment, RequestId} from '@hearsay/core';
import {consume, endQuietly, readText, untilAborted} from './consume.ts';
import type {Call, Operation} from './operation.ts';
import {isProblem, problemFrom, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {readBody} from './read-body.ts';
import {runHeaders} from './reply.ts';
import {contentTypeOf, headerOf, nameRequest} from './request-headers.ts';
import type {Patience} from './stream-output.ts';
import {problemFromUpstream} from './upstream-problem.ts';

export interface RunService extends Environment, Patience {
  readonly cluster: Cluster;
  /** Every request that is being read or answered; aborting one ends it with the reason. */
  readonly running: Set<AbortController>;
}

/** Largest error body that is read from llama-server. */
const errorBytesMax = 1024 * 1024;

/**
 * Serves one request for an engine from its first to its last byte. Every way out ends the run: the answer was whole,
 * it broke, or the client went away; the latter also while it uploads and while it waits for a node.
 */
export async function serveRun(
  request: IncomingMessage,
  response: ServerResponse,
  operation: Operation,
  service: RunService,
): Promise<void> {
  const {running} = service;
  const {errors} = operation;
  const id = newRequestId(service.random);
  const controller = new AbortController();
  running.add(controller);
  response.on('error', () => {}); // 'close' follows and says the same
  response.once('close', () => {
    if (running.has(controller)) controller.abort(new Fault('CANCELLED', 'the client went away'));
  });
  response.setHeader('x-hearsay-request', id);
  nameRequest(request, response, errors, id);
  try {
    const call = await untilAborted(readCall(request, id, operation, service), controller.signal);
    if (call.kind === 'problem') return sendProblem(response, call, errors);
    await answer(call, response, service, controller.signal);
  } catch (error) {
    note(error, id, service);
    if (!response.destroyed) sendProblem(response, problemFrom(error), errors);
  } finally {
    running.delete(controller);
  }
}

/** Reads and parses the body once; from here on it is bytes again. */
async function readCall(
  request: IncomingMessage,
  id: RequestId,
  operation: Operation,
  {clock}: RunService,
): Promise<Call | Problem> {
  const bytes = await readBody(request, clock);
  if (isProblem(bytes)) return bytes;
  return operation.read(bytes, {
    id,
    policy: headerOf(request, 'x-hearsay-policy'),
    traceparent: headerOf(request, 'traceparent'),
    contentType: contentTypeOf(request),
  });
}

async function answer(call: Call, response: ServerResponse, service: RunService, signal: AbortSignal): Promise<void> {
  using reply = call.reply(response, service.clock, service);
  try {
    const given = await untilAborted(service.cluster.dispatch(call.request, signal), signal, discard);
    describeRun(given, response);
    const problem = await problemIn(given, call, signal);
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
async function problemIn(
  {status, contentType, body}: Answer,
  {answerType}: Call,
  signal: AbortSignal,
): Promise<Problem | undefined> {
  if (status === 200 && contentType.startsWith(answerType)) return undefined;
  const text = await readText(body, errorBytesMax, signal);
  if (status !== 200) return problemFromUpstream(status, text);
  throw new Fault('ENGINE_FAILED', `the engine answered ${contentType || 'something'} instead of ${answerType}`);
}

/** An answer that came after its client had gone. */
function discard({body}: Answer): void {
  endQuietly(body[Symbol.asyncIterator]());
}

/** Failures are answers to the client; only a bug of ours is news to the owner of this machine. */
function note(error: unknown, request: RequestId, {log}: RunService): void {
  if (error instanceof Fault && error.code !== 'INTERNAL') {
    log('debug', 'a request failed', {request, code: error.code, message: describeError(error)});
  } else {
    log('error', 'a bug made a request fail', {request, error});
  }
}
