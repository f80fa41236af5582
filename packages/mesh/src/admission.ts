import type {Clock, NodeId} from '@hearsay/core';

/** A refused node is not dialled again for this long; what a person changes to admit it takes longer. */
const refusalMs = 60_000;

/** Refused nodes that are remembered. A stranger can make ids at will, so the oldest goes first. */
const refusalsMax = 256;

export type AdmissionState =
  | {readonly kind: 'unknown'}
  | {readonly kind: 'admitted'}
  | {readonly kind: 'refused'; readonly reason: string};

const unknown: AdmissionState = {kind: 'unknown'};
const admitted: AdmissionState = {kind: 'admitted'};

/** Remembers who may have what. Everything that serves a peer asks here first (law 8). */
export class Admissions {
  readonly #clock: Clock;
  readonly #changed: (node: NodeId) => void;
  readonly #admitted = new Set<NodeId>();
  readonly #refused = new Map<NodeId, {reason: string; timer: Disposable}>();
  readonly #waiting = new Map<NodeId, (() => void)[]>();

  constructor(clock: Clock, changed: (node: NodeId) => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  state(node: NodeId): AdmissionState {
    if (this.#admitted.has(node)) return admitted;
    const refusal = this.#refused.get(node);
    return refusal === undefined ? unknown : {kind: 'refused', reason: refusal.reason};
  }

  isAdmitted(node: NodeId): boolean {
    return this.#admitted.has(node);
  }

  /** Nodes that were refused a short while ago. */
  refused(): NodeId[] {
    return [...this.#refused.keys()];
  }

  /** Something has changed that may admit whoever was refused. */
  pardon(): void {
    for (const node of this.refused()) this.#expire(node);
  }

  /** A new connection: an earlier refusal does not count for it. */
  begin(node: NodeId): void {
    this.#dropRefusal(node);
  }

  admit(node: NodeId): void {
    if (this.#admitted.has(node)) return;
    this.#dropRefusal(node);
    this.#admitted.add(node);
    this.#settle(node);
  }

  refuse(node: NodeId, reason: string): void {
    this.#admitted.delete(node);
    this.#dropRefusal(node);
    const [oldest] = this.#refused.keys();
    if (this.#refused.size >= refusalsMax && oldest !== undefined) this.#expire(oldest);
    const timer = this.#clock.after(refusalMs, () => this.#expire(node));
    this.#refused.set(node, {reason, timer});
    this.#settle(node);
  }

  /** The last connection is gone: whoever comes back is asked again. */
  forget(node: NodeId): void {
    if (this.#admitted.delete(node)) this.#settle(node);
    else this.#release(node);
  }

  /** Waits until it is decided, or until the connection is gone; true when the node is admitted. */
  async decided(node: NodeId): Promise<boolean> {
    if (this.state(node).kind === 'unknown') {
      await new Promise<void>(resolve => {
        this.#waiting.set(node, [...(this.#waiting.get(node) ?? []), resolve]);
      });
    }
    return this.#admitted.has(node);
  }

  #settle(node: NodeId): void {
    this.#release(node);
    this.#changed(node);
  }

  #release(node: NodeId): void {
    const waiting = this.#waiting.get(node) ?? [];
    this.#waiting.delete(node);
    for (const resolve of waiting) resolve();
  }

  #expire(node: NodeId): void {
    this.#dropRefusal(node);
    this.#changed(node);
  }

  #dropRefusal(node: NodeId): void {
    this.#refused.get(node)?.timer[Symbol.dispose]();
    this.#refused.delete(node);
  }

  [Symbol.dispose](): void {
    for (const {timer} of this.#refused.values()) timer[Symbol.dispose]();
    for (const node of this.#waiting.keys()) this.#release(node);
  }
}
