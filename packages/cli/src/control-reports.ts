import {toDigest, toNodeId} from '@hearsay/core';
import type {Digest, EngineDetails, NodeId} from '@hearsay/core';
import {z} from 'zod';

/** Answers of the daemon to `load`, `stop`, `show` and `logs`. */

interface Asked {
  readonly id: NodeId;
  readonly name: string;
  readonly local: boolean;
  readonly digest: Digest;
  /** What speaks against it on that node. */
  readonly refused: string | undefined;
}

export interface EngineOutcome extends Asked {
  readonly engine: EngineDetails | undefined;
}

interface LogOutcome extends Asked {
  readonly lines: readonly string[];
  readonly first: number;
  readonly next: number;
}

const asked = {
  id: z.string().transform(toNodeId),
  name: z.string(),
  local: z.boolean(),
  digest: z.string().transform(toDigest),
  refused: absent(z.string()),
};

const engine = z.object({
  state: z.enum(['stopped', 'starting', 'ready', 'draining', 'stopping', 'backing off', 'broken']),
  slots: z.number(),
  busy: z.number(),
  queued: z.number(),
  context: z.number(),
  loadedShare: absent(z.number()),
  remainingMs: absent(z.number()),
  readySeconds: absent(z.number()),
  untilSeconds: absent(z.number()),
  failure: absent(z.string()),
});

export const engineOutcomesSchema: z.ZodType<{readonly nodes: readonly EngineOutcome[]}> = z.object({
  nodes: z.array(z.object({...asked, engine: absent(engine)})),
});

export const logOutcomesSchema: z.ZodType<{readonly nodes: readonly LogOutcome[]}> = z.object({
  nodes: z.array(
    z.object({
      ...asked,
      lines: z.array(z.string()).default([]),
      first: z.number().default(0),
      next: z.number().default(0),
    }),
  ),
});

/** JSON has no undefined: a missing field means the same. */
function absent<T>(schema: z.ZodType<T>) {
  return schema.nullish().transform(value => value ?? undefined);
}
