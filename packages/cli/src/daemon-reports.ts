import {capabilities, isDigest, isNodeId} from '@hearsay/core';
import type {Digest, EngineReport, ModelReport, NodeId, NodeReport, StatusReport} from '@hearsay/core';
import {z} from 'zod';

/**
 * What the admin API of a daemon answers. Unknown fields are dropped, so that a newer daemon can be asked; anything
 * that does not fit was not said by hearsay.
 */

const nodeId = z.custom<NodeId>(isNodeId);
const digest = z.custom<Digest>(isDigest);
/** Without what this version knows nothing of. */
const capabilityList = z
  .array(z.string())
  .transform(told => capabilities.filter(capability => told.includes(capability)));

export const statusSchema: z.ZodType<StatusReport> = z.object({
  id: nodeId,
  name: z.string(),
  version: z.string(),
  mesh: z.string(),
  meshAddresses: z.array(z.string()),
  gateway: z.string(),
  engine: z.string(),
  processId: z.number(),
  uptimeSeconds: z.number(),
  peers: z.number(),
  models: z.number(),
  loaded: z.number(),
  inFlight: z.number(),
  role: z.string().optional(),
  state: z.string().default('serving'),
  policies: z.number().default(0),
  dataFolder: z.string(),
});

export const nodesSchema: z.ZodType<{readonly nodes: readonly NodeReport[]}> = z.object({
  nodes: z.array(
    z.object({
      id: nodeId,
      name: z.string(),
      local: z.boolean(),
      address: z.string(),
      state: z.enum(['alive', 'seen', 'unreachable', 'draining', 'paused']),
      note: absent(z.string()),
      path: z.enum(['self', 'direct', 'relayed']),
      relayedBy: absent(z.string()),
      roundTripMs: absent(z.number()),
      version: z.string(),
      memoryKind: z.enum(['device', 'ram']),
      memoryTotalBytes: z.number(),
      memoryFreeBytes: z.number(),
      models: z.number(),
      loaded: z.array(z.string()),
      busy: z.number(),
      slots: z.number(),
    }),
  ),
});

export const enginesSchema: z.ZodType<{readonly engines: readonly EngineReport[]}> = z.object({
  engines: z.array(
    z.object({
      name: z.string(),
      digest,
      sizeBytes: z.number(),
      processor: z.string(),
      context: z.number(),
      state: z.string(),
      startedSecondsAgo: absent(z.number()),
      node: z.string(),
      nodeId,
      nodeName: z.string(),
      nodeState: z.enum(['alive', 'draining', 'paused']).default('alive'),
      untilSeconds: absent(z.number()),
      slots: z.number(),
      busy: z.number(),
      queued: z.number(),
      failure: absent(z.string()),
      loadedShare: absent(z.number()),
      loadingSecondsLeft: absent(z.number()),
    }),
  ),
});

export const modelsSchema: z.ZodType<{readonly models: readonly ModelReport[]}> = z.object({
  models: z.array(
    z.object({
      name: z.string(),
      names: z.array(z.string()),
      digest,
      sizeBytes: z.number(),
      architecture: z.string(),
      quant: z.string(),
      parameters: z.number(),
      contextMax: z.number(),
      capabilities: capabilityList,
      status: z.enum(['loaded', 'loading', 'unloaded']),
      nodes: z.array(z.object({id: nodeId, name: z.string(), local: z.boolean()})),
      conflict: z.boolean(),
      demo: z.boolean(),
      problem: absent(z.string()),
      hashed: absent(z.number()),
    }),
  ),
});

/** The error body of the gateway. */
export const problemSchema: z.ZodType<{readonly error: {readonly message: string}}> = z.object({
  error: z.object({message: z.string().min(1)}),
});

/** JSON has no undefined: a missing field means the same. */
function absent<T>(schema: z.ZodType<T>) {
  return schema.nullish().transform(value => value ?? undefined);
}
