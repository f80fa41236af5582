import {allows, isBatteryLow, isNamed} from '@hearsay/core';
import type {ModelStore, NodeFlags, Refusal, Worker, WorkRequest} from '@hearsay/core';

/** A node that takes nothing now says when asking again makes sense: its owner changes that by hand. */
const retryAfterMs = 30_000;

export interface Guard {
  readonly nodeName: string;
  readonly models: Pick<ModelStore, 'find'>;
  readonly flags: () => NodeFlags;
}

/**
 * This machine's worker behind what its owner and the application's key allow. The entry node has checked the same, but
 * from gossip; the worker has the last word (law 4).
 */
export function guardWorker(worker: Worker, guard: Guard): Worker {
  return {
    node: worker.node,
    async offer(request, signal) {
      const {draining, paused, batteryShare} = guard.flags();
      if (draining || paused || (request.hop > 0 && isBatteryLow(batteryShare)))
        return {kind: 'busy', reason: 'draining', record: undefined, retryAfterMs};
      return refusalFor(request, worker, guard) ?? worker.offer(request, signal);
    },
  };
}

function refusalFor({caller, digests, hop}: WorkRequest, {node}: Worker, guard: Guard): Refusal | undefined {
  if (caller === undefined) return undefined;
  const {nodes, models} = caller.rights;
  const {nodeName: name} = guard;
  if (nodes && !nodes.some(text => isNamed({node, name}, text, hop === 0))) {
    return refuse(`the key ${caller.name} may not use this node`);
  }
  const model = digests.map(digest => guard.models.find(digest)).find(found => found !== undefined);
  if (model && !allows(models, [...model.names, model.digest])) {
    return refuse(`the key ${caller.name} may not use ${model.names[0]}`);
  }
  return undefined;
}

function refuse(message: string): Refusal {
  return {kind: 'refused', code: 'auth', message};
}
