import {viewNodesMax} from '@hearsay/core';
import type {NodeId, SignedRecord} from '@hearsay/core';
import {isSigned} from './identity.ts';

/**
 * Knows of each node the last records whose signatures were right. Every peer tells a newcomer the same ones, and each
 * exchange brings those again that gossip has brought, so that verifying all of them would cost more than the rest.
 */
export class VerifiedRecords {
  readonly #records = new Map<NodeId, readonly SignedRecord[]>();
  readonly #verify: (record: SignedRecord) => boolean;
  readonly #keptOfNode: number;

  /** One record of a node is enough for whoever hears them in their order. */
  constructor(verify: (record: SignedRecord) => boolean = isSigned, keptOfNode = 1) {
    this.#verify = verify;
    this.#keptOfNode = keptOfNode;
  }

  isSigned(record: SignedRecord): boolean {
    const known = this.#records.get(record.node);
    if (known?.some(each => isSame(each, record)) === true) return true;
    if (!this.#verify(record)) return false;
    const [oldest] = this.#records.keys();
    if (this.#records.size >= viewNodesMax && known === undefined && oldest !== undefined) this.#records.delete(oldest);
    this.#records.set(record.node, [record, ...(known ?? [])].slice(0, this.#keptOfNode));
    return true;
  }
}

function isSame(a: SignedRecord, b: SignedRecord): boolean {
  return Buffer.compare(a.signature, b.signature) === 0 && Buffer.compare(a.payload, b.payload) === 0;
}
