import {isIP} from 'node:net';
import type {Multiaddr} from '@multiformats/multiaddr';
import type {Clock, NodeId} from '@hearsay/core';
import {formatHostPort, hostPortOf} from './addresses.ts';

/** A dial may meet a node that is just starting; one that fails again some seconds later meets a wall. */
const failuresMin = 2;

/** A node that announces itself does so every half minute at least; one that no longer does is off. */
const forgetMs = 90_000;

/** Machines on one LAN that are told of; a person mends one after the other. */
const nodesMax = 64;

/** Notes nodes that announce themselves on this network and do not answer when dialled: a firewall, mostly (R60). */
export class Unanswered {
  readonly #clock: Clock;
  readonly #failed = new Map<NodeId, {readonly where: string; readonly count: number; readonly lastMs: number}>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  failed(node: NodeId, addresses: readonly Multiaddr[]): void {
    // Only addresses: names and zones are whatever text somebody has put into a packet.
    const plain = addresses.flatMap(address => hostPortOf(address) ?? []).filter(({host}) => isIP(host) !== 0);
    const where = plain.filter(({host}) => !host.includes('%')).map(formatHostPort);
    if (where.length === 0 || (this.#failed.size >= nodesMax && !this.#failed.has(node))) return;
    const count = (this.#failed.get(node)?.count ?? 0) + 1;
    this.#failed.set(node, {where: where.join(' and '), count, lastMs: this.#clock.monotonicMs()});
  }

  answered(node: NodeId): void {
    this.#failed.delete(node);
  }

  /** For people. */
  warnings(): readonly string[] {
    const nowMs = this.#clock.monotonicMs();
    for (const [node, {lastMs}] of this.#failed) if (nowMs - lastMs > forgetMs) this.#failed.delete(node);
    const walled = [...this.#failed.values()].filter(({count}) => count >= failuresMin);
    return walled.map(({where}) => `a node of this mesh announces itself at ${where}, but does not answer there`);
  }
}
