import type {Beat, NodeId} from '@hearsay/core';

export interface Offering extends Disposable {
  /** It was taken: it counts until a record comes that knows of it, of that load sequence or a later one. */
  readonly untilRecord: (loadSeq: number | undefined) => void;
  /** Its answer has come to its end, so that it is nobody's load any more, whether a record tells of that or not. */
  readonly over: () => void;
}

interface Offer {
  knownFromLoadSeq: number | undefined;
}

/** Offers of this node to others, which count as their load as long as no record of theirs can know of them. */
export class OwnOffers {
  readonly #offers = new Map<NodeId, Set<Offer>>();

  get byNode(): ReadonlyMap<NodeId, ReadonlySet<unknown>> {
    return this.#offers;
  }

  /** From now until it is disposed one more counts; `heardLoadSeq` says what was heard last of the node. */
  begin(node: NodeId, heardLoadSeq: () => number): Offering {
    const own = this.#offers.get(node) ?? new Set();
    this.#offers.set(node, own);
    const offer: Offer = {knownFromLoadSeq: undefined};
    own.add(offer);
    return {
      untilRecord(loadSeq) {
        const heard = heardLoadSeq();
        offer.knownFromLoadSeq = loadSeq ?? heard + 1;
        if (heard >= offer.knownFromLoadSeq) own.delete(offer); // gossip was quicker than the answer
      },
      over: () => void own.delete(offer),
      [Symbol.dispose]() {
        if (offer.knownFromLoadSeq === undefined) own.delete(offer);
      },
    };
  }

  /** A record with as great a load sequence counts them itself (no clocks are compared, law 5); a new boot has none. */
  heard({node, boot, loadSeq}: Beat, before: Beat | undefined): void {
    if (before !== undefined && before.boot !== boot) return this.forget(node);
    const own = this.#offers.get(node);
    for (const offer of own ?? []) {
      if (offer.knownFromLoadSeq !== undefined && loadSeq >= offer.knownFromLoadSeq) own?.delete(offer);
    }
  }

  /** Its connection is gone, and with it what was taken there. */
  forget(node: NodeId): void {
    this.#offers.delete(node);
  }
}
