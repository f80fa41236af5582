import {formatPolicy} from '@hearsay/core';
import type {Busy, Digest, Journal, NodeId, Refusal, RequestEvent, WorkRequest} from '@hearsay/core';
import type {ServePeer} from './serve-peer.ts';
import {watchLease} from './watch-lease.ts';

/** This node as it serves peers, for its own journal. */
export interface ServingNode {
  readonly node: NodeId;
  readonly nodeName: string;
  readonly journal: Pick<Journal, 'note'>;
  readonly modelName: (digest: Digest) => string;
}

/** Longest reason of a refusal that is kept. */
const reasonLengthMax = 300;

/** Serves peers as `serve` does, and keeps what came of it: the asked node's side of a request. */
export function journalServing(serve: ServePeer, self: ServingNode): ServePeer {
  return async (request, from, signal) => {
    const answer = await serve(request, from, signal);
    // An attempt that is out of turn says nothing new about the request that it names.
    if (answer.kind === 'refused' && (answer.code === 'hop' || answer.code === 'stale-attempt')) return answer;
    const note = (event: RequestEvent): void => self.journal.note(request.request, event);
    note(arrivalOf(request, from));
    if (answer.kind !== 'accepted') {
      for (const event of eventsOfNo(answer, request.attempt)) note(event);
      return answer;
    }
    const {attempt} = request;
    note({kind: 'accepted', attempt, digest: answer.digest});
    const {node, nodeName} = self;
    return watchLease(answer, {node, nodeName, attempt, modelName: self.modelName(answer.digest), note});
  };
}

function arrivalOf({endpoint, policy, bodyBytes, caller}: WorkRequest, from: NodeId): RequestEvent {
  const asked = {model: '', endpoint, policy: formatPolicy(policy), bodyBytes};
  return {kind: 'arrived', role: 'worker', ...asked, caller: caller?.name, from};
}

/** What this node said no to has ended here. */
function eventsOfNo(answer: Busy | Refusal, attempt: number): readonly RequestEvent[] {
  const end = {kind: 'ended', outcome: 'refused', code: undefined, usage: undefined} as const;
  if (answer.kind === 'busy') {
    const {reason, retryAfterMs} = answer;
    return [
      {kind: 'busy', attempt, reason, retryAfterMs},
      {...end, message: `busy: ${reason}`},
    ];
  }
  const message = answer.message.slice(0, reasonLengthMax);
  return [
    {kind: 'refused', attempt, code: answer.code, message},
    {...end, message},
  ];
}
