import {formatPolicy, needsSlot} from '@hearsay/core';
import type {ClientRequest, Decision, Digest, Place, Ranked} from '@hearsay/core';
import type {FairQueue, Room, Turn, Waiter} from './fair-queue.ts';

/** How things were for a request when it came to the line, and how they are later. */
type Standing = Pick<Waiter, 'capacity' | 'holdMs' | 'look'>;

/** The line that one request would wait in. */
export interface RequestLine {
  readonly isCrowded: () => boolean;
  readonly turn: (at: Standing, signal: AbortSignal, waits: (place: Place) => void) => Promise<Turn>;
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
 * A node that was not forced needs no look at the others, which nobody has explained yet.
 */
export function expectsLine(node: Ranked, isForced: boolean, decision: Decision): boolean {
  if (!isForced) return node.state === 'ready' && expectedWaitMs(node) > 0;
  return decision.ranked.find(other => other.node === node.node)?.state === 'ready';
}

/** Pure: until the engine could begin with it, as the choice expected it. */
export function expectedWaitMs({cost}: Ranked): number {
  return cost ? 1000 * (cost.terms.model + cost.terms.queue) : 0;
}

/** What the line must know of a request; `decide` chooses once more. */
export function standingAt({ranked}: Decision, decide: () => Decision): Standing {
  return {capacity: slotsOf(ranked), holdMs: holdMsOf(ranked[0]), look: () => roomIn(decide())};
}

/** Pure: the nodes may have slots that are free although requests wait here. That a wait should be over is no proof. */
function roomIn({best, ranked}: Decision): Room {
  return {capacity: slotsOf(ranked), isFree: best?.state === 'ready' && best.freeSlots > best.ownOffers};
}

/**
 * Pure: slots that requests can be in line for. A node that has failed one of them is none to be lost for the others:
 * where it fails them all, it is soon left alone.
 */
export function slotsOf(ranked: readonly Ranked[]): number {
  let slots = 0;
  for (const {exclusion, place, slots: own} of ranked) {
    if (place !== undefined || exclusion === 'busy' || exclusion === 'tried') slots += own;
  }
  return slots;
}

/** Before anything is measured: as engines assume. */
const holdMsAtFirst = 2000;

/** Pure: how long a request keeps a slot there. */
function holdMsOf(node: Ranked | undefined): number {
  if (node?.learned?.holdMs !== undefined) return node.learned.holdMs;
  return node?.cost === undefined ? holdMsAtFirst : 1000 * (node.cost.terms.prefill + 2 * node.cost.terms.decode);
}
