import type {Ed25519PrivateKey} from '@libp2p/interface';
import {peerIdFromString} from '@libp2p/peer-id';
import type {Multiaddr} from '@multiformats/multiaddr';
import {Fault} from '@hearsay/core';
import type {Environment, MeshHandlers, NodeId} from '@hearsay/core';
import {hostPortOf} from './addresses.ts';
import {Admissions} from './admission.ts';
import {ConnectionGate} from './connection-gate.ts';
import {Gossip} from './gossip.ts';
import {nodeIdOf} from './identity.ts';
import {startLibp2p} from './libp2p-node.ts';
import type {Libp2pNode} from './libp2p-node.ts';
import {Links} from './links.ts';
import {StayConnected} from './stay-connected.ts';

export interface MeshConfig {
  /** Only nodes of one mesh name meet. */
  readonly mesh: string;
  /** The node's key, made when missing. */
  readonly identityFile: string;
  readonly nodeName: string;
  /** The next free one is taken when it is in use; 0 takes any. */
  readonly port: number;
  /** Peers that are dialled for ever: host, host:port, [v6]:port or multiaddr. */
  readonly peers: readonly string[];
  /** Port of named peers that are written without one. */
  readonly defaultPort: number;
  /** Multiaddrs to listen at instead of every interface; for tests. */
  readonly listen?: readonly string[];
  /** Search the local networks; default true. */
  readonly discovery?: boolean;
}

/** The pieces that know each other: made together, before libp2p starts to ask the gate. */
export class MeshParts {
  readonly key: Ed25519PrivateKey;
  readonly self: NodeId;
  readonly admissions: Admissions;
  readonly links: Links;
  readonly gate: ConnectionGate;
  readonly gossip: Gossip;
  readonly dialling: StayConnected;
  handlers: MeshHandlers | undefined;
  /** Called whenever a peer is, or still is, admitted. */
  admitted: ((node: NodeId) => void) | undefined;
  #node: Libp2pNode | undefined;

  constructor(key: Ed25519PrivateKey, config: MeshConfig, environment: Environment) {
    this.key = key;
    this.self = nodeIdOf(peerIdFromString(key.publicKey.toString()));
    this.admissions = new Admissions(environment.clock, node => this.announce(node));
    this.links = new Links(this.admissions);
    this.gossip = new Gossip(config.mesh, this.admissions);
    this.gate = new ConnectionGate({
      self: this.self,
      clock: environment.clock,
      isServing: () => this.handlers !== undefined,
      isConnected: node => this.links.isConnected(node),
      isNamed: address => this.dialling.isNamed(address),
    });
    this.dialling = new StayConnected(
      {self: this.self, peers: config.peers, defaultPort: config.defaultPort, port: () => this.#port()},
      {
        isConnected: node => this.links.isConnected(node),
        isRefused: node => this.admissions.state(node).kind === 'refused',
        nodeAt: address => this.gate.nodeAt(address),
        dial: (addresses, node, signal) => this.#dial(addresses, node, signal),
      },
      environment,
    );
    this.#config = config;
  }

  readonly #config: MeshConfig;

  get node(): Libp2pNode {
    if (this.#node === undefined) throw new Fault('INTERNAL', 'the mesh is not open');
    return this.#node;
  }

  async open(): Promise<void> {
    this.#node = await startLibp2p({
      privateKey: this.key,
      port: this.#config.port,
      listen: this.#config.listen,
      gate: this.gate,
      gossip: this.gossip.service(),
    });
  }

  announce(node: NodeId): void {
    const link = this.links.link(node);
    this.handlers?.linkChanged(node, link);
    if (link?.admitted === true) this.admitted?.(node);
  }

  listening(): Multiaddr[] {
    return this.node.services.listeners.addresses();
  }

  #port(): number {
    return this.listening().flatMap(address => hostPortOf(address) ?? [])[0]?.port ?? 0;
  }

  async #dial(addresses: readonly Multiaddr[], node: NodeId | undefined, signal: AbortSignal): Promise<NodeId> {
    const full = addresses.map(address => {
      const named = address.getComponents().some(({name}) => name === 'p2p');
      return node === undefined || named ? address : address.encapsulate(`/p2p/${node}`);
    });
    const connection = await this.node.dial(full, {signal});
    return nodeIdOf(connection.remotePeer);
  }
}
