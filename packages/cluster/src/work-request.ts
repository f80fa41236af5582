import type {ClientRequest, Digest, Ranked, WorkRequest} from '@hearsay/core';
import {expectedWaitMs} from './request-line.ts';

interface Offered extends Pick<WorkRequest, 'attempt' | 'force'> {
  readonly node: Ranked;
  readonly digests: readonly Digest[];
  readonly prefix: readonly number[] | undefined;
}

/** Pure: what the node is offered. */
export function workRequest(
  {id, endpoint, needs, policy, body, contentType, traceparent, caller, keepAliveMs, contextTokens}: ClientRequest,
  {node, attempt, digests, force, prefix}: Offered,
): WorkRequest {
  return {
    request: id,
    attempt,
    hop: 0,
    digests,
    endpoint,
    needs,
    policy,
    deadlineMs: undefined,
    bodyBytes: body.length,
    body,
    contentType,
    waitEstimateMs: expectedWaitMs(node),
    force,
    traceparent,
    caller,
    keepAliveMs,
    contextTokens,
    ...(prefix ? {prefix} : {}),
  };
}
