import type {IncomingMessage, ServerResponse} from 'node:http';
import {Fault, methodOf, newRequestId, untilAborted} from '@hearsay/core';
import type {Answer, ClientRequest, RequestId, RunFacts} from '@hearsay/core';
import {attend, noteFailure} from './attend.ts';
import type {RunService} from './attend.ts';
import {chooseModel} from './choose-model.ts';
import {consume, discard, readText} from './consume.ts';
import type {Join} from './idempotency.ts';
import {callerIn, clientOf} from './identify.ts';
import {applyPreset} from './ollama/apply-preset.ts';
import type {Call, Immediate, Operation} from './operation.ts';
import {isProblem, problemFrom, sendJson, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {readBody} from './read-body.ts';
import {loadingNote, waitingNote} from './loading-note.ts';
import {runHeaders, textOfHeader} from './reply.ts';
import type {Reply} from './reply.ts';
import {contentTypeOf, headerOf} from './request-headers.ts';
import {problemFromUpstream} from './upstream-problem.ts';

/** Largest error body that is read from llama-server. */
const errorBytesMax = 1024 * 1024;

/** Serves one request for an engine from its first to its last byte. */
export async function serveRun(
  request: IncomingMessage,
  response: ServerResponse,
  operation: Operation<Call | Immediate | Problem>,
  service: RunService,
): Promise<void> {
  const {errors} = operation;
  await attend(request, response, {...service, errors}, async (id, signal) => {
    const call = await receive(request, response, {id, operation, service}, signal);
    if (call.kind === 'problem') return sendProblem(response, call, errors);
    if (call.kind === 'attached') return untilAborted(call.ended, signal);
    if (call.kind === 'immediate') return sendJson(response, 200, await untilAborted(call.answer(), signal));
    await answer(call, response, service, signal);
  });
}

interface Receiving {
  readonly id: RequestId;
  readonly operation: Operation<Call | Immediate | Problem>;
  readonly service: RunService;
}

/** What is asked for. The bytes that came end with this function, because a call may hold a copy of them (C66). */
async function receive(
  request: IncomingMessage,
  response: ServerResponse,
  {id, operation, service}: Receiving,
  signal: AbortSignal,
): Promise<Call | Immediate | Exclude<Join, {readonly kind: 'first'}>> {
  const bytes = await untilAborted(readBody(request, service), signal);
  if (isProblem(bytes)) return bytes;
  const joined = service.answers.join(request, response, bytes, operation.errors);
  return joined.kind === 'first' ? readCall(request, {id, bytes}, operation, service) : joined;
}

/** Parses the body once; from here on it is bytes again. */
function readCall(
  request: IncomingMessage,
  {id, bytes}: {readonly id: RequestId; readonly bytes: Uint8Array},
  operation: Operation<Call | Immediate | Problem>,
  service: RunService,
): Call | Immediate | Problem {
  const policy = headerOf(request, 'x-hearsay-policy');
  const call = operation.read(bytes, {
    id,
    policy: policy === undefined ? undefined : textOfHeader(policy),
    traceparent: headerOf(request, 'traceparent'),
    header: name => headerOf(request, name),
    contentType: contentTypeOf(request),
    caller: callerIn(request),
    query: new URLSearchParams(request.url?.split('?')[1]),
  });
  if (call.kind !== 'call') return call;
  const preset = service.presets.find(call.request.model);
  const asked = preset ? applyPreset(call.request, preset) : call.request;
  return {...call, request: {...asked, model: chooseModel(asked.model, service), client: clientOf(request)}};
}

async function answer(call: Call, response: ServerResponse, service: RunService, signal: AbortSignal): Promise<void> {
  const {cluster} = service;
  const waitsFor = (): string | undefined =>
    waitingNote(cluster.waiting(call.request.id)) ?? loadingNote(call.request.model, cluster.engines());
  let run: RunFacts | undefined;
  const contextOfRun = (): number | undefined =>
    run && cluster.engines().find(({nodeId, digest}) => nodeId === run?.node && digest === run.digest)?.context;
  using reply = call.reply(response, service.clock, {...service, waitsFor, contextOfRun});
  try {
    const given = await begin(call, response, service, signal);
    if (isProblem(given)) return reply.fail(given);
    run = given.run;
    reply.begin?.(given.contentType);
    await consume(given.body, chunk => reply.write(chunk), signal);
    reply.end();
  } catch (error) {
    noteFailure(error, {request: call.request.id}, service);
    finish(reply, error);
  }
}

/** What breaks after the end mark takes nothing from the client, unless the end itself cannot be written. */
function finish(reply: Reply, error: unknown): void {
  if (reply.isWhole?.() !== true) return reply.fail(problemFrom(error));
  try {
    reply.end();
  } catch (worse) {
    reply.fail(problemFrom(worse));
  }
}

/** An answer that can be passed on. What an engine refuses is mended where the dialect can, before there is output. */
async function begin(
  asked: Call,
  response: ServerResponse,
  service: RunService,
  signal: AbortSignal,
): Promise<Answer | Problem> {
  for (let call = asked; ;) {
    const given = await attempt(call, response, service, signal);
    const mended = isProblem(given) ? call.mend?.(given) : undefined;
    if (mended === undefined) return given;
    const id = newRequestId(service.random); // nodes refuse a second run of one request, and this is another body
    if (!response.headersSent) response.setHeader('x-hearsay-request', id);
    call = {...mended, request: {...mended.request, id}};
  }
}

async function attempt(
  call: Call,
  response: ServerResponse,
  {cluster}: RunService,
  signal: AbortSignal,
): Promise<Answer | Problem> {
  try {
    const given = await untilAborted(cluster.dispatch(call.request, signal), signal, discard);
    describeRun(given, response);
    return (await problemIn(given, call, signal)) ?? given;
  } catch (error) {
    if (call.mend === undefined || !(error instanceof Fault) || error.code !== 'ENGINE_FAILED') throw error;
    return problemFrom(error);
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
  {answerType, request}: Call,
  signal: AbortSignal,
): Promise<Problem | undefined> {
  if (status === 200 && (answerType === 'any' || contentType.startsWith(answerType))) return undefined;
  const text = await readText(body, errorBytesMax, signal);
  if (status !== 200) return isSwitchedOff(status, request) ? lasting(status, text) : problemFromUpstream(status, text);
  throw new Fault('ENGINE_FAILED', `the engine answered ${contentType || 'something'} instead of ${answerType}`);
}

/** llama-server's own status for it, which its clients know. Repeating it is of no use. */
function lasting(status: number, text: string): Problem {
  return {...problemFromUpstream(status, text), status, headers: {'x-should-retry': 'false'}};
}

/** The owner runs the engine without what somebody wants to look at. */
function isSwitchedOff(status: number, {endpoint}: ClientRequest): boolean {
  return status === 501 && methodOf(endpoint) === 'GET';
}
