import {ByteTail, Fault, outcomeOf, readUsage} from '@hearsay/core';
import type {Lease, NodeId, RequestEvent, WorkResponse} from '@hearsay/core';

/** Made once: every lease is disposed at its end, and a stack trace each time would cost more than the rest of it. */
const endedByAsker = new Fault('CANCELLED', 'the asking node ended it');

/** Who serves, for the journal. */
export interface Serving {
  readonly node: NodeId;
  readonly nodeName: string;
  readonly attempt: number;
  readonly modelName: string;
  readonly note: (event: RequestEvent) => void;
}

/** A lease of this node that tells the journal of its first byte and of its one end, however that comes. */
export function watchLease(lease: Lease, {node, nodeName, attempt, modelName, note}: Serving): Lease {
  const {digest} = lease;
  const tail = new ByteTail();
  let status = 200;
  let ended = false;

  function end(error: unknown): void {
    if (ended) return;
    ended = true;
    const usage = readUsage(tail.text());
    note({kind: 'ended', ...outcomeOf(error, status), usage});
  }

  async function* watched({body}: WorkResponse): AsyncGenerator<Uint8Array> {
    let hasBegun = false;
    try {
      for await (const chunk of body) {
        if (!hasBegun) note({kind: 'started', attempt, node, nodeName, digest, model: modelName, status});
        hasBegun = true;
        tail.add(chunk);
        yield chunk;
      }
    } catch (error) {
      end(error);
      throw error;
    }
    end(undefined);
  }

  return {
    ...lease,
    async run(body, signal) {
      try {
        const response = await lease.run(body, signal);
        ({status} = response);
        return {...response, body: watched(response)};
      } catch (error) {
        end(signal.aborted ? endedByAsker : error);
        throw error;
      }
    },
    async [Symbol.asyncDispose]() {
      end(endedByAsker);
      await lease[Symbol.asyncDispose]();
    },
  };
}
