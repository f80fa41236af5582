import {needsSlot} from '@hearsay/core';
import type {
  EngineHost,
  Lease,
  ModelStore,
  NodeId,
  StoredModel,
  Worker,
  WorkRequest,
  WorkResponse,
} from '@hearsay/core';
import type {Affinity} from './affinity.ts';
import {TimingsReader} from './read-timings.ts';
import type {Experience} from './start-experience.ts';

/** How far the true wait may be above the expected one, before another node had better be asked. */
const waitFactorMax = 1.5;
const waitSlackMs = 1000;

export interface LocalWorkerDeps {
  readonly models: Pick<ModelStore, 'find'>;
  readonly engines: Pick<EngineHost, 'reserve' | 'engines'>;
  /** Learns from every answer that ends well. */
  readonly experience: Pick<Experience, 'answered'>;
  /** Remembers what its engines have read. */
  readonly affinity: Pick<Affinity, 'served'>;
}

/** This machine as a worker: finds the file by digest and takes a slot of its engine in one synchronous step. */
export function localWorker(node: NodeId, {models, engines, experience, affinity}: LocalWorkerDeps): Worker {
  /** The body as it is, with the timings in it read in passing. */
  async function* learning(
    {body}: WorkResponse,
    digest: StoredModel['digest'],
    {bodyBytes, prefix}: {readonly bodyBytes: number; readonly prefix: readonly number[] | undefined},
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = new TimingsReader();
    for await (const chunk of body) {
      reader.read(chunk);
      yield chunk;
    }
    const timings = reader.timings();
    if (timings) experience.answered(digest, {bodyBytes, timings});
    if (prefix) affinity.served(digest, prefix);
  }

  /** The asker has chosen to wait here, and the true wait is about what it expected. */
  function isExpected({waitEstimateMs}: WorkRequest, {key}: StoredModel): boolean {
    if (waitEstimateMs <= 0) return false;
    const waitMs = engines.engines().find(engine => engine.key === key)?.waitMs;
    return waitMs !== undefined && waitMs <= waitFactorMax * waitEstimateMs + waitSlackMs;
  }

  return {
    node,
    async offer(request) {
      const model = request.digests.map(digest => models.find(digest)).find(found => found !== undefined);
      if (!model) return {kind: 'refused', code: 'digest', message: 'this node does not have that model (any more)'};
      const missing = request.needs.find(need => !model.capabilities.includes(need));
      if (missing) return {kind: 'refused', code: 'capability', message: `${model.names[0]} cannot do ${missing}`};

      const {endpoint, contentType, keepAliveMs, contextTokens} = request;
      const force = request.force || isExpected(request, model);
      const reservation = engines.reserve(model, {force, keepAliveMs, contextTokens, beside: !needsSlot(endpoint)});
      if (reservation.kind !== 'accepted') return reservation;
      const lease: Lease = {
        kind: 'accepted',
        digest: model.digest,
        async run(body, signal) {
          const response = await reservation.run({endpoint, contentType, body}, signal);
          return {
            ...response,
            body: learning(response, model.digest, {bodyBytes: body.length, prefix: request.prefix}),
          };
        },
        [Symbol.asyncDispose]: async () => reservation[Symbol.asyncDispose](),
      };
      return lease;
    },
  };
}
