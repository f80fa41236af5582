import {lacksRight, mayUse} from '@hearsay/core';
import type {Caller, Capability, ClientRequest, Clock, Cluster, Policy} from '@hearsay/core';
import {ollamaErrors} from '../error-form.ts';
import type {JsonObject} from '../json.ts';
import {ObjectReply} from '../object-reply.ts';
import type {Assembly} from '../object-reply.ts';
import type {Call, Immediate, Operation, RequestFrame} from '../operation.ts';
import {badRequest, isProblem, problemFrom} from '../problem.ts';
import type {Problem} from '../problem.ts';
import {clientRequest, readJson} from '../read-request.ts';
import {AnswerLines} from './answer-lines.ts';
import type {AnswerFrame} from './answer-lines.ts';
import {joinLines} from './join-lines.ts';
import type {FindModel, KnownModel} from './known-model.ts';
import {NdjsonReply} from './ndjson-reply.ts';
import {readRequest} from './read-request.ts';
import type {Form, OllamaCall} from './read-request.ts';
import {roomyNodes, usableContext} from './roomy-nodes.ts';
import {shorten, shorteningsMax} from './shorten.ts';

export interface OllamaService {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly find: FindModel;
}

/** `/api/chat` and `/api/generate`, with the forms that only load or unload a model. */
export function ollamaRun(form: Form, service: OllamaService): Operation<Call | Immediate | Problem> {
  return {
    errors: ollamaErrors,
    read: (bytes, frame) => {
      const body = readJsonBody(bytes);
      if (isProblem(body)) return body;
      const call = readRequest(body.body, form, usable(service.find, frame.caller));
      if (isProblem(call)) return call;
      const answer = frameOf(call, service.clock);
      switch (call.kind) {
        case 'run':
          return runCall(call, answer, {...frame, roomy: roomyNodes(call, service.cluster.engines())});
        case 'load':
          return loadCall(call, answer, frame);
        case 'unload':
          return unloadCall(call, answer, service.cluster, frame.caller);
      }
    },
  };
}

/** What a name means stays; of what could run instead a key is given only what it may use. */
function usable(find: FindModel, caller: Caller | undefined): FindModel {
  if (caller === undefined) return find;
  const findUsable = (asked: string, needs?: readonly Capability[]): KnownModel | undefined => {
    const found = find(asked, needs);
    return needs && found && !mayUse(caller, found.report) ? undefined : found;
  };
  return Object.assign(findUsable, find);
}

/** Pure: as Ollama, it says what an empty body lacks. */
export function readJsonBody(bytes: Uint8Array): {readonly kind: 'body'; readonly body: JsonObject} | Problem {
  return bytes.length === 0 ? badRequest('missing request body') : readJson(bytes);
}

function frameOf({form, model}: OllamaCall, clock: Clock): AnswerFrame {
  const startedMs = clock.monotonicMs();
  return {
    form,
    model: model.asked,
    stamp: () => new Date(clock.wallMs()).toISOString(),
    elapsedMs: () => clock.monotonicMs() - startedMs,
  };
}

/** With the nodes that have as much context as the client would like. */
interface RunFrame extends RequestFrame {
  readonly roomy: Policy | undefined;
}

function runCall(call: OllamaCall, answer: AnswerFrame, frame: RunFrame, shortenings = 0): Call | Problem {
  const {model, endpoint, needs, body, stream} = call;
  const request = clientRequest({model: model.target, endpoint, needs, body}, frame);
  if (isProblem(request)) return request;
  const wantsLogprobs = body['logprobs'] === true;
  return {
    kind: 'call',
    request: {...toRoomy(request, frame), keepAliveMs: call.keepAliveMs, contextTokens: call.contextTokens},
    answerType: 'text/event-stream',
    reply: (response, clock, patience) => {
      const lines = new AnswerLines(answer, wantsLogprobs);
      return stream ? new NdjsonReply(response, clock, patience, lines) : new ObjectReply(response, assembly(lines));
    },
    mend: problem => {
      if (!call.mayShorten || shortenings >= shorteningsMax || hasTooLittle(call, problem)) return undefined;
      const shorter = shorten(body, problem);
      const next = shorter && runCall({...call, body: shorter}, answer, frame, shortenings + 1);
      return next === undefined || isProblem(next) ? undefined : next;
    },
  };
}

/** It says less than whatever anybody has said about nodes. */
function toRoomy(request: ClientRequest, {roomy}: RunFrame): ClientRequest {
  return request.policyFrom === undefined && roomy ? {...request, policy: roomy, policyFrom: 'context'} : request;
}

/** The engine has less context than was asked for: whoever asked for more did not mean his messages to be left out. */
function hasTooLittle({model: {report}, contextTokens = 0}: OllamaCall, {extra}: Problem): boolean {
  const there = extra?.['n_ctx'];
  return typeof there === 'number' && there < usableContext(report, contextTokens);
}

/** The lines of an answer as one object. */
function assembly(lines: AnswerLines): Assembly {
  let joined: JsonObject | undefined;
  const join = (added: readonly JsonObject[]): void => {
    for (const line of added) joined = joinLines(joined, line);
  };
  return {
    errors: ollamaErrors,
    take: event => {
      const added = lines.add(event);
      if (isProblem(added)) return added;
      join(added);
      return undefined;
    },
    result: () => {
      if (!lines.isWhole) return undefined;
      join(lines.finish());
      return joined;
    },
  };
}

/** The shortest request that makes some node load the model; what it says is dropped. */
function loadCall(call: OllamaCall, answer: AnswerFrame, frame: RequestFrame): Call | Problem {
  const {model} = call;
  const embeds = model.report.capabilities.includes('embeddings');
  const request = clientRequest(
    {
      model: model.target,
      endpoint: embeds ? '/v1/embeddings' : '/v1/completions',
      needs: [embeds ? 'embeddings' : 'completion'],
      body: embeds ? {input: ' '} : {prompt: '', n_predict: 0, stream: true},
    },
    frame,
  );
  if (isProblem(request)) return request;
  const result = (): JsonObject => ({...new AnswerLines(answer, false).idle(), done: true, done_reason: 'load'});
  return {
    kind: 'call',
    request: {...request, keepAliveMs: call.keepAliveMs, contextTokens: call.contextTokens},
    answerType: embeds ? 'application/json' : 'text/event-stream',
    reply: response => new ObjectReply(response, {errors: ollamaErrors, take: () => undefined, result}),
  };
}

/** Stops what the cluster port lets a client stop; a model that is not loaded is unloaded already. */
function unloadCall(
  {model, form}: OllamaCall,
  answer: AnswerFrame,
  cluster: Cluster,
  caller: Caller | undefined,
): Immediate | Problem {
  if (caller && !mayUse(caller, model.report)) return problemFrom(lacksRight(caller, `the model ${model.report.name}`));
  return {
    kind: 'immediate',
    answer: async () => {
      await cluster.stop(model.target);
      return {...new AnswerLines({...answer, form}, false).idle(), done: true, done_reason: 'unload'};
    },
  };
}
