import type {Connection} from '@libp2p/interface';
import {multiaddr} from '@multiformats/multiaddr';
import type {Multiaddr} from '@multiformats/multiaddr';
import {isNodeId} from '@hearsay/core';
import type {ExchangeMessage, Link, NodeId} from '@hearsay/core';
import {formatHostPort, hostPortOf, isRelayed, relayOf, withoutLoopback, withoutNode} from './addresses.ts';
import type {Admissions} from './admission.ts';
import {nodeIdOf} from './identity.ts';

/** Refused nodes leave after a moment; their address stays readable for as long as the refusal is shown. */
const addressesMax = 512;

/** Listen addresses that one peer may claim. */
const listenMax = 16;

/** The connections of this node as links: who is there, where, and how far away. */
export class Links {
  readonly #admissions: Admissions;
  readonly #open = new Map<NodeId, Set<Connection>>();
  readonly #listening = new Map<NodeId, readonly Multiaddr[]>();
  readonly #addresses = new Map<NodeId, string>();

  constructor(admissions: Admissions) {
    this.#admissions = admissions;
  }

  opened(connection: Connection): void {
    const node = nodeIdOf(connection.remotePeer);
    this.#open.set(node, new Set([...(this.#open.get(node) ?? []), connection]));
  }

  /** Returns the connection that is left, if there is one. */
  closed(connection: Connection): Connection | undefined {
    const node = nodeIdOf(connection.remotePeer);
    this.#open.get(node)?.delete(connection);
    const left = this.connection(node);
    if (left === undefined) {
      this.#open.delete(node);
      this.#listening.delete(node);
    }
    return left;
  }

  /** What the peer says about where it listens; only a hint until somebody dials it. */
  identified(node: NodeId, addresses: readonly Multiaddr[]): void {
    if (this.#open.has(node)) this.#listening.set(node, addresses.slice(0, listenMax));
  }

  isConnected(node: NodeId): boolean {
    return this.connection(node) !== undefined;
  }

  isDirect(node: NodeId): boolean {
    return this.connection(node)?.direct === true;
  }

  /** The live connection to use: a direct one, else the oldest. */
  connection(node: NodeId): Connection | undefined {
    const live = this.connections(node);
    return live.find(({direct}) => direct) ?? live[0];
  }

  connections(node: NodeId): Connection[] {
    return [...(this.#open.get(node) ?? [])].filter(({status}) => status === 'open');
  }

  /** Everybody who is connected, admitted or not. */
  nodes(): NodeId[] {
    return [...this.#open.keys()];
  }

  admitted(): NodeId[] {
    return [...this.#open.keys()].filter(node => this.#admissions.isAdmitted(node) && this.isConnected(node));
  }

  /** Where a peer can be dialled: at what we see of it first, then at what it says. */
  dialable(node: NodeId): Multiaddr[] {
    const connection = this.connection(node);
    const seen = connection?.direction === 'outbound' ? [connection.remoteAddr] : [];
    const told = withoutLoopback([...(this.#listening.get(node) ?? [])]);
    const plain = [...seen, ...told].map(address => withoutNode(address).toString());
    return [...new Set(plain)].map(text => multiaddr(text));
  }

  /** For the exchange: where admitted peers listen. */
  known(): ExchangeMessage['addresses'] {
    return this.admitted().map(node => ({node, addresses: this.dialable(node).map(String).slice(0, 8)}));
  }

  link(node: NodeId): Link | undefined {
    const connection = this.connection(node);
    const state = this.#admissions.state(node);
    if (state.kind === 'unknown' || (state.kind === 'admitted' && connection === undefined)) return undefined;
    if (connection !== undefined) this.#remember(node, this.#addressOf(connection, node));
    return {
      node,
      admitted: state.kind === 'admitted',
      refusal: state.kind === 'refused' ? state.reason : undefined,
      address: this.#addresses.get(node) ?? '',
      path: connection === undefined || connection.direct ? 'direct' : 'relayed',
      relay: connection === undefined ? undefined : relayNodeOf(connection),
      roundTripMs: connection?.rtt,
    };
  }

  all(): Link[] {
    const nodes = new Set([...this.#open.keys(), ...this.#admissions.refused()]);
    return [...nodes].flatMap(node => this.link(node) ?? []);
  }

  #remember(node: NodeId, address: string): void {
    this.#addresses.delete(node);
    this.#addresses.set(node, address);
    const [oldest] = this.#addresses.keys();
    if (this.#addresses.size > addressesMax && oldest !== undefined) this.#addresses.delete(oldest);
  }

  /** A node listens at one port on all its addresses, so an inbound peer is found at its own address and that port. */
  #addressOf(connection: Connection, node: NodeId): string {
    const remote = hostPortOf(connection.remoteAddr);
    if (isRelayed(connection.remoteAddr)) return '';
    if (remote === undefined) return connection.remoteAddr.toString();
    if (connection.direction === 'outbound') return formatHostPort(remote);
    const listening = (this.#listening.get(node) ?? []).flatMap(address => hostPortOf(address) ?? []);
    const port = (listening.find(({host}) => host === remote.host) ?? listening[0])?.port;
    return formatHostPort(port === undefined ? remote : {host: remote.host, port});
  }
}

function relayNodeOf(connection: Connection): NodeId | undefined {
  const relay = relayOf(connection.remoteAddr);
  return isNodeId(relay) ? relay : undefined;
}
