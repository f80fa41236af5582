import type {ConnectionGater, MultiaddrConnection, PeerId, StreamMessageEvent} from '@libp2p/interface';
import type {Multiaddr} from '@multiformats/multiaddr';
import type {Clock, NodeId} from '@hearsay/core';
import {formatHostPort, hostPortOf, isRelayed} from './addresses.ts';
import {nodeIdOf} from './identity.ts';
import {Strangers} from './strangers.ts';

/** From the handshake to an open connection there are two more round trips. */
const claimMsMax = 3000;

/**
 * What a node may send before it is admitted. Whoever comes in says who it is, which takes some kilobytes; whom this
 * node has dialled answers that with all that it knows. Without this, streams that nobody reads yet would fill the
 * memory.
 */
const inboundBytesMax = 512 * 1024;
const outboundBytesMax = 4 * 1024 * 1024;

/** Named addresses whose owner is remembered: far more than a person lists. */
const identifiedMax = 1024;

export interface GateFacts {
  readonly self: NodeId;
  readonly clock: Clock;
  /** False until the node serves, and again while it stops. */
  readonly isServing: () => boolean;
  readonly isConnected: (node: NodeId) => boolean;
  /** Connected without a relay between. */
  readonly isDirect: (node: NodeId) => boolean;
  /** Members of a closed mesh prove what they are, so they may come from anywhere, also through a relay. */
  readonly isClosed: () => boolean;
  readonly isAdmitted: (node: NodeId) => boolean;
  readonly isRefused: (node: NodeId) => boolean;
  /** Whether an open mesh may talk to that address at all; who is admitted is decided later. */
  readonly isNear: (host: string) => boolean;
  /** Addresses that a person named, or that an invite did: only these are dialled outside of our own networks. */
  readonly isNamed: (address: Multiaddr) => boolean;
  /** Somebody there has proven to be this node itself. */
  readonly metSelf: (host: string) => void;
}

/** What the gate needs of a connection that is not up yet. */
interface Knocking
  extends
    Pick<MultiaddrConnection, 'remoteAddr'>,
    Partial<Pick<MultiaddrConnection, 'addEventListener' | 'removeEventListener' | 'abort'>> {}

/**
 * Decides which connections may be at all: from near addresses, or to named ones, and one for each pair. When two
 * nodes dial each other at once, only the lower id decides, and takes whichever handshake is through first; so a pair
 * gets exactly one connection, also when only one of the two can be dialled.
 */
export class ConnectionGate implements ConnectionGater {
  readonly #facts: GateFacts;
  readonly #claims = new Map<NodeId, number>();
  readonly #identified = new Map<string, NodeId>();
  readonly #strangers = new Strangers();

  constructor(facts: GateFacts) {
    this.#facts = facts;
  }

  /** Who answered at an address when it was last dialled. */
  nodeAt(address: Multiaddr): NodeId | undefined {
    return this.#identified.get(keyOf(address));
  }

  denyDialMultiaddr(address: Multiaddr): boolean {
    if (this.#facts.isNamed(address) || this.#facts.isClosed()) return false;
    const host = hostPortOf(address)?.host;
    return host === undefined || !this.#facts.isNear(host);
  }

  denyInboundConnection(connection: Knocking): boolean {
    if (!this.#facts.isServing()) return true;
    const host = hostPortOf(connection.remoteAddr)?.host;
    if (!this.#facts.isClosed() && (host === undefined || !this.#facts.isNear(host))) return true;
    const key = strangerKey(connection.remoteAddr);
    if (!this.#strangers.letIn(key, host ?? 'relayed')) return true;
    connection.addEventListener?.('close', () => this.#strangers.done(key));
    return false;
  }

  denyInboundEncryptedConnection(peer: PeerId, connection: Knocking): boolean {
    const node = nodeIdOf(peer);
    this.#limitStranger(node, connection, inboundBytesMax);
    return this.#decides(node) ? !this.#claim(node, isRelayed(connection.remoteAddr)) : false;
  }

  denyOutboundEncryptedConnection(peer: PeerId, connection: Knocking): boolean {
    const node = nodeIdOf(peer);
    const {remoteAddr} = connection;
    this.#identified.set(keyOf(remoteAddr), node);
    const [oldest] = this.#identified.keys();
    if (this.#identified.size > identifiedMax && oldest !== undefined) this.#identified.delete(oldest);
    if (node === this.#facts.self) {
      this.#facts.metSelf(hostPortOf(remoteAddr)?.host ?? '');
      return true;
    }
    this.#limitStranger(node, connection, outboundBytesMax);
    const relayed = isRelayed(remoteAddr);
    return this.#decides(node) ? !this.#claim(node, relayed) : this.#has(node, relayed);
  }

  /** Ends the connection when too much comes before its node is admitted. */
  #limitStranger(node: NodeId, connection: Knocking, bytesMax: number): void {
    let bytes = 0;
    const count = ({data}: StreamMessageEvent): void => {
      bytes += data.byteLength;
      if (bytes <= bytesMax) return;
      connection.removeEventListener?.('message', count);
      if (!this.#facts.isAdmitted(node)) connection.abort?.(new Error('too much was sent before it was admitted'));
    };
    connection.addEventListener?.('message', count);
  }

  /** Only members may be reached through this node. */
  denyInboundRelayReservation(source: PeerId): boolean {
    return !this.#facts.isClosed() || !this.#facts.isAdmitted(nodeIdOf(source));
  }

  /**
   * Somebody who was invited by a member behind this relay is a stranger here still; for the seconds that strangers
   * have, it may be passed on.
   */
  denyOutboundRelayedConnection(source: PeerId, destination: PeerId): boolean {
    return !this.#facts.isAdmitted(nodeIdOf(destination)) || this.#facts.isRefused(nodeIdOf(source));
  }

  denyInboundRelayedConnection(relay: PeerId): boolean {
    return !this.#facts.isClosed() || !this.#facts.isAdmitted(nodeIdOf(relay));
  }

  /** The node of this connection is admitted: it counts as no stranger. */
  welcomed(address: Multiaddr): void {
    this.#strangers.done(strangerKey(address));
  }

  /** The claim has become a connection, or the connection is gone. */
  settled(node: NodeId): void {
    this.#claims.delete(node);
  }

  #decides(node: NodeId): boolean {
    return this.#facts.self < node;
  }

  /** A direct connection may be added to a relayed one, which then ends when nothing runs on it any more. */
  #has(node: NodeId, relayed: boolean): boolean {
    return relayed ? this.#facts.isConnected(node) : this.#facts.isDirect(node);
  }

  #claim(node: NodeId, relayed: boolean): boolean {
    const now = this.#facts.clock.monotonicMs();
    for (const [claimed, sinceMs] of this.#claims) if (now - sinceMs >= claimMsMax) this.#claims.delete(claimed);
    if (this.#has(node, relayed) || this.#claims.has(node)) return false;
    this.#claims.set(node, now);
    return true;
  }
}

function keyOf(address: Multiaddr): string {
  const hostPort = hostPortOf(address);
  return hostPort === undefined ? address.toString() : formatHostPort(hostPort);
}

/** One connection among others of the same host; with or without the node id, as libp2p adds it in between. */
function strangerKey(address: Multiaddr): string {
  return isRelayed(address) ? address.toString() : keyOf(address);
}
