import type {IncomingMessage, ServerResponse} from 'node:http';
import {automatic, describeError, timeLimit, untilAborted} from '@hearsay/core';
import type {ClientRequest, NodeId, RequestId} from '@hearsay/core';
import {attend} from './attend.ts';
import type {RunService} from './attend.ts';
import {discard, readText} from './consume.ts';
import {anthropicErrors} from './error-form.ts';
import {parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {findModel} from './list-models.ts';
import {modelBehind} from './ollama/find-model.ts';
import {isProblem, sendJson, sendProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {readBody} from './read-body.ts';
import {plainModel, readMessages} from './read-messages.ts';
import {visibleEngines, visibleModels} from './visible-models.ts';

/** Clients ask before every turn, so that an estimate at once is worth more than the truth later. */
const countMsMax = 2000;

/** A count is one small object. */
const countBytesMax = 64 * 1024;

/** What a token is in most texts and models. */
const bytesPerToken = 3.5;

/** What an image costs in most models; its bytes say nothing about that. */
const tokensPerImage = 1500;

/** Pure: the size of a prompt when nobody can count it. */
function estimateTokens({system, messages, tools}: JsonObject): number {
  let images = 0;
  const text = JSON.stringify({system, messages, tools}, (key, value: unknown) => {
    if (key !== 'source') return value;
    images += 1;
    return undefined;
  });
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken) + images * tokensPerImage;
}

/**
 * Anthropic's count of the tokens of a prompt. Counted by an engine that has the model loaded, busy or not, and estimated
 * otherwise: a count never loads a model and never waits for one.
 */
export async function countTokens(
  request: IncomingMessage,
  response: ServerResponse,
  service: RunService,
): Promise<void> {
  const errors = anthropicErrors;
  await attend(request, response, {...service, errors}, async (id, signal) => {
    const bytes = await untilAborted(readBody(request, service), signal);
    const read = isProblem(bytes) ? bytes : readMessages(bytes);
    if (read.kind === 'problem') return sendProblem(response, read, errors);
    const node = loadedNode(modelBehind(plainModel(read.body), service), request, service);
    if (node?.kind === 'problem') return sendProblem(response, node, errors);
    const counted = node && (await count(requestTo(node, id, read.body), service, signal));
    response.setHeader('x-hearsay-reason', counted === undefined ? 'estimated' : 'counted');
    sendJson(response, 200, {input_tokens: counted ?? estimateTokens(read.body)});
  });
}

interface LoadedNode {
  readonly kind: 'node';
  readonly id: NodeId;
  readonly model: string;
}

/** The node that could count at once; undefined when there is none. */
function loadedNode(
  asked: string,
  request: IncomingMessage,
  {cluster, startedSeconds}: RunService,
): LoadedNode | Problem | undefined {
  const model = findModel(asked, visibleModels(cluster, request), startedSeconds);
  if (isProblem(model)) return model;
  const engines = visibleEngines(cluster, request);
  const engine = engines.find(({digest, state}) => digest === model['digest'] && state === 'ready');
  return engine && {kind: 'node', id: engine.nodeId, model: String(model['id'])};
}

function requestTo({id: node, model}: LoadedNode, id: RequestId, body: JsonObject): ClientRequest {
  return {
    id,
    model,
    endpoint: '/v1/messages/count_tokens',
    needs: ['chat'],
    policy: {...automatic, placement: {kind: 'pin', nodes: [node]}},
    body: Buffer.from(JSON.stringify(body)),
    traceparent: undefined,
  };
}

async function count(
  request: ClientRequest,
  {cluster, clock, log}: RunService,
  signal: AbortSignal,
): Promise<number | undefined> {
  using limit = timeLimit(clock, countMsMax, 'counting tokens', signal);
  try {
    const {status, body} = await untilAborted(cluster.dispatch(request, limit.signal), limit.signal, discard);
    const tokens = parseObject(await readText(body, countBytesMax, limit.signal))?.['input_tokens'];
    return status === 200 && typeof tokens === 'number' ? tokens : undefined;
  } catch (error) {
    signal.throwIfAborted();
    log('debug', 'tokens are estimated, because nobody could count them', {reason: describeError(error)});
    return undefined;
  }
}
