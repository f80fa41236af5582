import {needsSlot} from '@hearsay/core';
import type {EngineHost, Lease, ModelStore, NodeId, Worker} from '@hearsay/core';

/** This machine as a worker: finds the file by digest and takes a slot of its engine in one synchronous step. */
export function localWorker(node: NodeId, models: ModelStore, engines: EngineHost): Worker {
  return {
    node,
    async offer(request) {
      const model = request.digests.map(digest => models.find(digest)).find(found => found !== undefined);
      if (!model) return {kind: 'refused', code: 'digest', message: 'this node does not have that model (any more)'};
      const missing = request.needs.find(need => !model.capabilities.includes(need));
      if (missing) return {kind: 'refused', code: 'capability', message: `${model.names[0]} cannot do ${missing}`};

      const {endpoint, contentType, force, keepAliveMs} = request;
      const reservation = engines.reserve(model, {force, keepAliveMs, beside: !needsSlot(endpoint)});
      if (reservation.kind !== 'accepted') return reservation;
      const lease: Lease = {
        kind: 'accepted',
        digest: model.digest,
        record: undefined,
        run: async (body, signal) => reservation.run({endpoint, contentType, body}, signal),
        [Symbol.asyncDispose]: async () => reservation[Symbol.asyncDispose](),
      };
      return lease;
    },
  };
}
