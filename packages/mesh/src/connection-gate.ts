import type {ConnectionGater, MultiaddrConnection, PeerId} from '@libp2p/interface';
import type {Multiaddr} from '@multiformats/multiaddr';
import type {Clock, NodeId} from '@hearsay/core';
import {formatHostPort, hostPortOf, isNear} from './addresses.ts';
import {nodeIdOf} from './identity.ts';

/** From the handshake to an open connection there are two more round trips. */
const claimMsMax = 3000;

/** Named addresses whose owner is remembered: far more than a person lists. */
const identifiedMax = 1024;

export interface GateFacts {
  readonly self: NodeId;
  readonly clock: Clock;
  /** False until the node serves, and again while it stops. */
  readonly isServing: () => boolean;
  readonly isConnected: (node: NodeId) => boolean;
  /** Addresses that a person named: only these are dialled outside of our own networks. */
  readonly isNamed: (address: Multiaddr) => boolean;
}

/**
 * Decides which connections may be at all: from near addresses, or to named ones, and one for each pair. When two
 * nodes dial each other at once, only the lower id decides, and takes whichever handshake is through first; so a pair
 * gets exactly one connection, also when only one of the two can be dialled.
 */
export class ConnectionGate implements ConnectionGater {
  readonly #facts: GateFacts;
  readonly #claims = new Map<NodeId, number>();
  readonly #identified = new Map<string, NodeId>();

  constructor(facts: GateFacts) {
    this.#facts = facts;
  }

  /** Who answered at an address when it was last dialled. */
  nodeAt(address: Multiaddr): NodeId | undefined {
    return this.#identified.get(keyOf(address));
  }

  denyDialMultiaddr(address: Multiaddr): boolean {
    if (this.#facts.isNamed(address)) return false;
    const host = hostPortOf(address)?.host;
    return host === undefined || !isNear(host);
  }

  denyInboundConnection(connection: Pick<MultiaddrConnection, 'remoteAddr'>): boolean {
    const host = hostPortOf(connection.remoteAddr)?.host;
    return !this.#facts.isServing() || host === undefined || !isNear(host);
  }

  denyInboundEncryptedConnection(peer: PeerId): boolean {
    const node = nodeIdOf(peer);
    return this.#decides(node) ? !this.#claim(node) : false;
  }

  denyOutboundEncryptedConnection(peer: PeerId, connection: Pick<MultiaddrConnection, 'remoteAddr'>): boolean {
    const node = nodeIdOf(peer);
    this.#identified.set(keyOf(connection.remoteAddr), node);
    const [oldest] = this.#identified.keys();
    if (this.#identified.size > identifiedMax && oldest !== undefined) this.#identified.delete(oldest);
    if (node === this.#facts.self) return true;
    return this.#decides(node) ? !this.#claim(node) : this.#facts.isConnected(node);
  }

  /** The claim has become a connection, or the connection is gone. */
  settled(node: NodeId): void {
    this.#claims.delete(node);
  }

  #decides(node: NodeId): boolean {
    return this.#facts.self < node;
  }

  #claim(node: NodeId): boolean {
    const now = this.#facts.clock.monotonicMs();
    for (const [claimed, sinceMs] of this.#claims) if (now - sinceMs >= claimMsMax) this.#claims.delete(claimed);
    if (this.#facts.isConnected(node) || this.#claims.has(node)) return false;
    this.#claims.set(node, now);
    return true;
  }
}

function keyOf(address: Multiaddr): string {
  const hostPort = hostPortOf(address);
  return hostPort === undefined ? address.toString() : formatHostPort(hostPort);
}
