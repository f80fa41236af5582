import {viewNodesMax} from '@hearsay/core';
import type {NodeId, SignedRecord} from '@hearsay/core';
import {isSigned} from './identity.ts';

/**
 * Knows of each node the last record whose signature was right. Every peer tells a newcomer the same records, and each
 * exchange brings those again that gossip has brought, so that verifying all of them would cost more than the rest.
 */
export class VerifiedRecords {
  readonly #records = new Map<NodeId, SignedRecord>();
  readonly #verify: (record: SignedRecord) => boolean;

  constructor(verify: (record: SignedRecord) => boolean = isSigned) {
    this.#verify = verify;
  }

  isSigned(record: SignedRecord): boolean {
    const known = this.#records.get(record.node);
    if (known !== undefined && isSame(known, record)) return true;
    if (!this.#verify(record)) return false;
    const [oldest] = this.#records.keys();
    if (this.#records.size >= viewNodesMax && known === undefined && oldest !== undefined) this.#records.delete(oldest);
    this.#records.set(record.node, record);
    return true;
  }
}

function isSame(a: SignedRecord, b: SignedRecord): boolean {
  return Buffer.compare(a.signature, b.signature) === 0 && Buffer.compare(a.payload, b.payload) === 0;
}
