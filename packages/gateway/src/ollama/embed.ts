import type {ServerResponse} from 'node:http';
import {Fault, parseKeepAlive} from '@hearsay/core';
import {ollamaErrors} from '../error-form.ts';
import {isObject, parseObject} from '../json.ts';
import type {JsonObject} from '../json.ts';
import type {Call, Operation, RequestFrame} from '../operation.ts';
import {badRequest, isProblem, sendJson, sendProblem} from '../problem.ts';
import type {Problem} from '../problem.ts';
import {clientRequest} from '../read-request.ts';
import type {Reply} from '../reply.ts';
import {problemFromEvent} from '../upstream-problem.ts';
import {cannot, modelOf} from './known-model.ts';
import type {KnownModel} from './known-model.ts';
import {readJsonBody} from './run-operations.ts';
import type {OllamaService} from './run-operations.ts';

/** Largest answer: 2048 vectors of 4096 numbers as text. */
const answerBytesMax = 128 * 1024 * 1024;

/** How often inputs that are too long are cut; each cut aims well below the limit. */
const cutsMax = 4;

type Form = 'embed' | 'embeddings';

interface Wish {
  readonly kind: 'wish';
  readonly form: Form;
  readonly model: KnownModel;
  readonly inputs: readonly string[];
  readonly keepAliveMs: number | undefined;
  readonly mayCut: boolean;
  readonly dimensions: number | undefined;
  readonly elapsedMs: () => number;
}

/** `/api/embed`, and `/api/embeddings` for one prompt and without normalizing. */
export function ollamaEmbed(form: Form, service: OllamaService): Operation {
  return {
    errors: ollamaErrors,
    read: (bytes, frame) => {
      const body = readJsonBody(bytes);
      if (isProblem(body)) return body;
      const wish = readEmbed(body.body, form, service);
      if (isProblem(wish)) return wish;
      return embedCall(wish, frame, cutsMax);
    },
  };
}

function readEmbed(body: JsonObject, form: Form, {find, clock}: OllamaService): Wish | Problem {
  const model = modelOf(body, find);
  if (isProblem(model)) return isMissing(model) ? embedNotFound(body) : model;
  const keepAlive = parseKeepAlive(body['keep_alive']);
  if (keepAlive.kind === 'bad') return badRequest(keepAlive.message, {param: 'keep_alive'});
  const inputs = form === 'embed' ? readInputs(body['input']) : readInputs(body['prompt']);
  if (inputs === undefined) return badRequest('invalid input type', {param: 'input'});
  const {dimensions} = body;
  const startedMs = clock.monotonicMs();
  const wish: Wish = {
    kind: 'wish',
    form,
    model,
    inputs,
    keepAliveMs: keepAlive.kind === 'given' ? keepAlive.ms : undefined,
    mayCut: body['truncate'] !== false,
    dimensions: typeof dimensions === 'number' && dimensions > 0 ? Math.trunc(dimensions) : undefined,
    elapsedMs: () => clock.monotonicMs() - startedMs,
  };
  return cannot(model, ['embeddings']) ?? wish;
}

function isMissing({status}: Problem): boolean {
  return status === 404;
}

function embedNotFound({model}: JsonObject): Problem {
  const asked = typeof model === 'string' ? model.slice(0, 200) : '';
  return badRequest(`model "${asked}" not found, try pulling it first`, {
    status: 404,
    code: 'model_not_found',
    param: 'model',
  });
}

function readInputs(input: unknown): readonly string[] | undefined {
  if (input === undefined || input === null || input === '') return [];
  const list: readonly unknown[] = Array.isArray(input) ? input : [input];
  return list.every(each => typeof each === 'string') ? list : undefined;
}

/** Without inputs it only loads the model: one space is embedded, and the vector dropped. */
function embedCall(wish: Wish, frame: RequestFrame, cutsLeft: number): Call | Problem {
  const {model, inputs, form} = wish;
  const raw = form === 'embeddings' ? {embd_normalize: -1} : {};
  const request = clientRequest(
    {
      model: model.target,
      endpoint: '/v1/embeddings',
      needs: ['embeddings'],
      body: {input: inputs.length === 0 ? [' '] : inputs, ...raw},
    },
    frame,
  );
  if (isProblem(request)) return request;
  return {
    kind: 'call',
    request: {...request, keepAliveMs: wish.keepAliveMs},
    answerType: 'application/json',
    reply: response => new EmbedReply(response, wish),
    mend: problem => {
      const share = excess(problem);
      if (share === undefined || !wish.mayCut || cutsLeft === 0) return undefined;
      const next = embedCall({...wish, inputs: cut(inputs, share)}, frame, cutsLeft - 1);
      return isProblem(next) ? undefined : next;
    },
  };
}

/** Pure: how much of the longest input may stay; undefined when the problem is another one. */
export function excess({message, code, extra}: Problem): number | undefined {
  const batch = /input \((\d+) tokens\) is too large.*batch size: (\d+)/u.exec(message);
  const {n_prompt_tokens: tokens, n_ctx: context} = extra ?? {};
  if (batch) return Number(batch[2]) / Number(batch[1]);
  if (code !== 'context_length_exceeded') return undefined;
  return typeof tokens === 'number' && typeof context === 'number' ? context / tokens : 0.5;
}

/** Pure: every input no longer than this share of the longest one, with a little room for the error of the estimate. */
export function cut(inputs: readonly string[], share: number): readonly string[] {
  const lengthMax = Math.max(1, Math.floor(Math.max(...inputs.map(({length}) => length)) * Math.min(share, 1) * 0.9));
  return inputs.map(input => input.slice(0, lengthMax));
}

/** Reads llama-server's vectors whole and gives them in Ollama's form. */
class EmbedReply implements Reply {
  readonly #response: ServerResponse;
  readonly #wish: Wish;
  readonly #chunks: Uint8Array[] = [];
  #restBytes = answerBytesMax;
  #ended = false;

  constructor(response: ServerResponse, wish: Wish) {
    this.#response = response;
    this.#wish = wish;
  }

  write(chunk: Uint8Array): boolean {
    this.#restBytes -= chunk.length;
    if (this.#restBytes < 0) throw new Fault('ENGINE_FAILED', `the vectors are larger than ${answerBytesMax} bytes`);
    this.#chunks.push(chunk);
    return !this.#ended;
  }

  end(): void {
    if (this.#ended) return;
    const answer = parseObject(Buffer.concat(this.#chunks).toString());
    if (answer === undefined) throw new Fault('ENGINE_FAILED', 'the engine sent vectors that are not JSON');
    const problem = problemFromEvent(answer);
    if (problem) return this.fail(problem);
    this.#ended = true;
    sendJson(this.#response, 200, translateVectors(answer, this.#wish));
  }

  fail(problem: Problem): void {
    if (this.#ended) return;
    this.#ended = true;
    const {mayCut} = this.#wish;
    const isTooLong = excess(problem) !== undefined && !mayCut;
    const told = isTooLong ? badRequest('the input length exceeds the context length') : problem;
    if (!this.#response.destroyed) sendProblem(this.#response, told, ollamaErrors);
  }

  [Symbol.dispose](): void {
    this.#ended = true;
  }
}

function translateVectors(answer: JsonObject, {form, model, inputs, dimensions, elapsedMs}: Wish): JsonObject {
  const data: readonly unknown[] = Array.isArray(answer['data']) ? answer['data'] : [];
  const vectors = data.filter(isObject).map(({embedding}) => numbers(embedding));
  const wanted = inputs.length === 0 ? [] : vectors.map(vector => shortenVector(vector, dimensions));
  if (form === 'embeddings') return {embedding: wanted[0] ?? []};
  const usage = answer['usage'];
  const tokens = isObject(usage) ? usage['prompt_tokens'] : 0;
  return {
    model: model.asked,
    embeddings: wanted,
    total_duration: Math.round(elapsedMs() * 1e6),
    load_duration: 0, // nobody tells how much of the total it was, but some clients insist on a number
    prompt_eval_count: inputs.length > 0 && typeof tokens === 'number' ? tokens : 0,
  };
}

function numbers(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.filter(each => typeof each === 'number') : [];
}

/** Cut to so many dimensions, and of length 1 again. */
function shortenVector(vector: readonly number[], dimensions: number | undefined): readonly number[] {
  if (dimensions === undefined || dimensions >= vector.length) return vector;
  const short = vector.slice(0, dimensions);
  const length = Math.hypot(...short);
  return length === 0 ? short : short.map(value => value / length);
}
