import type {IncomingMessage, ServerResponse} from 'node:http';
import {describeError, Fault, newRequestId} from '@hearsay/core';
import type {Cluster, Environment, RequestId} from '@hearsay/core';
import type {Aliases} from './aliases.ts';
import type {ErrorForm} from './error-form.ts';
import type {IdempotentAnswers} from './idempotency.ts';
import type {Blobs} from './ollama/blobs.ts';
import type {Presets} from './ollama/presets.ts';
import {problemFrom, sendProblem, shuttingDown} from './problem.ts';
import type {BodyRules} from './read-body.ts';
import {nameRequest} from './request-headers.ts';
import type {Patience} from './stream-output.ts';

export interface RunService extends Environment, Patience, BodyRules {
  readonly cluster: Cluster;
  /** Names that the owner gave to models. */
  readonly aliases: Aliases;
  /** What requests that name no model go to; undefined: the only model that can answer them. */
  readonly defaultModel: string | undefined;
  /** Names that Ollama clients made. */
  readonly presets: Presets;
  /** Files that they brought. */
  readonly blobs: Blobs;
  /** When the gateway started; models have no date of their own. */
  readonly startedSeconds: number;
  /** Every request that is being read or answered; aborting one ends it with the reason. */
  readonly running: Set<AbortController>;
  /** Those that can be had again by their key. */
  readonly answers: IdempotentAnswers;
  /** What runs may end, and nothing new begins. */
  readonly isRetiring?: (() => boolean) | undefined;
}

/**
 * Does the work for one request and ends it whatever happens: every way out ends what was started for it, also when the
 * client goes away while it uploads or while it waits for a node. What the work throws becomes the client's answer.
 */
export async function attend(
  request: IncomingMessage,
  response: ServerResponse,
  options: RunService & {readonly errors: ErrorForm},
  work: (id: RequestId, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const {running, errors} = options;
  if (options.isRetiring?.() === true) return sendProblem(response, shuttingDown(), errors);
  const id = newRequestId(options.random);
  const controller = new AbortController();
  running.add(controller);
  response.on('error', () => {}); // 'close' follows and says the same
  response.once('close', () => {
    if (running.has(controller)) controller.abort(new Fault('CANCELLED', 'the client went away'));
  });
  response.setHeader('x-hearsay-request', id);
  nameRequest(request, response, errors, id);
  try {
    await work(id, controller.signal);
  } catch (error) {
    noteFailure(error, {request: id}, options);
    if (!response.headersSent && !response.destroyed) sendProblem(response, problemFrom(error), errors);
  } finally {
    running.delete(controller);
  }
}

/** Failures are answers to the client; only a bug of ours is news to the owner of this machine. */
export function noteFailure(error: unknown, which: {request: RequestId} | {path: string}, {log}: Environment): void {
  if (error instanceof Fault && error.code !== 'INTERNAL') {
    log('debug', 'a request failed', {...which, code: error.code, message: describeError(error)});
  } else {
    log('error', 'a bug made a request fail', {...which, error});
  }
}
