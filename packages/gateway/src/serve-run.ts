import type {IncomingMessage, ServerResponse} from 'node:http';
import {Fault} from '@hearsay/core';
import type {Answer, RequestId} from '@hearsay/core';
import {resolveAlias} from './aliases.ts';
import {attend, noteFailure} from './attend.ts';
import type {RunService} from './attend.ts';
import {consume, discard, readText, untilAborted} from './consume.ts';
import type {Call, Operation} from './operation.ts';
import {isProblem, problemFrom, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {readBody} from './read-body.ts';
import {runHeaders} from './reply.ts';
import {contentTypeOf, headerOf} from './request-headers.ts';
import {problemFromUpstream} from './upstream-problem.ts';

/** Largest error body that is read from llama-server. */
const errorBytesMax = 1024 * 1024;

/** Serves one request for an engine from its first to its last byte. */
export async function serveRun(
  request: IncomingMessage,
  response: ServerResponse,
  operation: Operation,
  service: RunService,
): Promise<void> {
  const {errors} = operation;
  await attend(request, response, {...service, errors}, async (id, signal) => {
    const call = await untilAborted(readCall(request, id, operation, service), signal);
    if (call.kind === 'problem') return sendProblem(response, call, errors);
    await answer(call, response, service, signal);
  });
}

/** Reads and parses the body once; from here on it is bytes again. */
async function readCall(
  request: IncomingMessage,
  id: RequestId,
  operation: Operation,
  service: RunService,
): Promise<Call | Problem> {
  const bytes = await readBody(request, service);
  if (isProblem(bytes)) return bytes;
  const call = operation.read(bytes, {
    id,
    policy: headerOf(request, 'x-hearsay-policy'),
    traceparent: headerOf(request, 'traceparent'),
    contentType: contentTypeOf(request),
  });
  if (call.kind === 'problem') return call;
  return {...call, request: {...call.request, model: resolveAlias(call.request.model, service.aliases)}};
}

async function answer(call: Call, response: ServerResponse, service: RunService, signal: AbortSignal): Promise<void> {
  using reply = call.reply(response, service.clock, service);
  try {
    const given = await untilAborted(service.cluster.dispatch(call.request, signal), signal, discard);
    describeRun(given, response);
    const problem = await problemIn(given, call, signal);
    if (problem) return reply.fail(problem);
    reply.begin?.(given.contentType);
    await consume(given.body, chunk => reply.write(chunk), signal);
    reply.end();
  } catch (error) {
    noteFailure(error, call.request.id, service);
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
  if (status === 200 && (answerType === 'any' || contentType.startsWith(answerType))) return undefined;
  const text = await readText(body, errorBytesMax, signal);
  if (status !== 200) return problemFromUpstream(status, text);
  throw new Fault('ENGINE_FAILED', `the engine answered ${contentType || 'something'} instead of ${answerType}`);
}
