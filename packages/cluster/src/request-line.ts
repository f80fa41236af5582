import {formatPolicy, needsSlot} from '@hearsay/core';
import type {ClientRequest, Digest, Place, Ranked} from '@hearsay/core';
import type {FairQueue, Turn, Waiter} from './fair-queue.ts';

/** The line that one request would wait in. */
export interface RequestLine {
  readonly isCrowded: () => boolean;
  readonly turn: (
    at: Pick<Waiter, 'capacity' | 'holdMs'>,
    signal: AbortSignal,
    waits: (place: Place) => void,
  ) => Promise<Turn>;
}

/**
 * Requests wait together for the same models under the same policy, on the same nodes: one that may only run elsewhere
 * holds nobody up.
 */
export function lineFor(request: ClientRequest, digests: readonly Digest[], queue: FairQueue): RequestLine | undefined {
  if (!needsSlot(request.endpoint)) return undefined;
  const {id, body, caller, client, policy} = request;
  const nodes = caller?.rights.nodes;
  const name = `${digests.join()} ${formatPolicy(policy)}${nodes === undefined ? '' : ` on ${nodes.join()}`}`;
  const who = {request: id, client: client ?? caller?.name ?? '', bytes: body.length};
  return {
    isCrowded: () => queue.isCrowded(name),
    turn: async (at, signal, waits) => queue.turn(name, {...who, ...at}, waits, signal),
  };
}

/**
 * Pure: it would stand in line for a slot there. Whoever comes while a model is loaded stands in the engine's own line:
 * those that wait for the first load are no reason for a second one, which they might seem to be once it is measured.
 */
export function expectsLine(node: Ranked, isForced: boolean, ranked: readonly Ranked[]): boolean {
  if (!isForced) return node.state === 'ready' && expectedWaitMs(node) > 0;
  return ranked.find(other => other.node === node.node)?.state === 'ready';
}

/** Pure: until the engine could begin with it, as the choice expected it. */
export function expectedWaitMs({cost}: Ranked): number {
  return cost ? 1000 * (cost.terms.model + cost.terms.queue) : 0;
}

/** Pure: slots that requests can be in line for. */
export function slotsOf(ranked: readonly Ranked[]): number {
  let slots = 0;
  for (const one of ranked) if (one.place !== undefined || one.exclusion === 'busy') slots += one.slots;
  return slots;
}

/** Before anything is measured: as engines assume. */
const holdMsAtFirst = 2000;

/** Pure: how long a request keeps a slot there. */
export function holdMsOf(node: Ranked | undefined): number {
  if (node?.learned?.holdMs !== undefined) return node.learned.holdMs;
  return node?.cost === undefined ? holdMsAtFirst : 1000 * (node.cost.terms.prefill + 2 * node.cost.terms.decode);
}
