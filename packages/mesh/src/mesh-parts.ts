import {networkInterfaces} from 'node:os';
import type {Connection, Ed25519PrivateKey} from '@libp2p/interface';
import {peerIdFromString} from '@libp2p/peer-id';
import type {Multiaddr} from '@multiformats/multiaddr';
import {Fault, isLoopbackAddress, isPrivateAddress, timeLimit} from '@hearsay/core';
import type {Environment, MeshHandlers, NodeId} from '@hearsay/core';
import {hostPortOf, isRelayed, ownHosts, parsePeer, tcpMultiaddr} from './addresses.ts';
import {Admissions} from './admission.ts';
import {Clones, cloneText} from './clones.ts';
import {ConnectionGate} from './connection-gate.ts';
import {Doorkeeper} from './doorkeeper.ts';
import type {Arrival} from './doorkeeper.ts';
import {Gossip} from './gossip.ts';
import {loadIdentity, nodeIdOf} from './identity.ts';
import {startLibp2p} from './libp2p-node.ts';
import type {Libp2pNode} from './libp2p-node.ts';
import {Links} from './links.ts';
import {Membership, passLifeMsDefault} from './membership.ts';
import type {NetworkSources} from './read-networks.ts';
import {systemNetworks} from './read-networks.ts';
import {StayConnected} from './stay-connected.ts';
import {TrustedNetworks} from './trusted-networks.ts';
import {VerifiedRecords} from './verified-records.ts';

export interface MeshConfig {
  /** Only nodes of one mesh name meet. */
  readonly mesh: string;
  /** The node's key, made when missing. What the node trusts is kept beside it. */
  readonly identityFile: string;
  readonly nodeName: string;
  /** The next free one is taken when it is in use; 0 takes any. */
  readonly port: number;
  /** Peers that are dialled for ever: host, host:port, [v6]:port or multiaddr. */
  readonly peers: readonly string[];
  /** Port of named peers that are written without one. */
  readonly defaultPort: number;
  /** Pass connections on between members of a closed mesh that cannot reach each other. */
  readonly relay?: boolean;
  /** Where others reach this node, beside the addresses of its interfaces: host, host:port or multiaddr. */
  readonly announce?: readonly string[];
  /** Multiaddrs to listen at instead of every interface; for tests. */
  readonly listen?: readonly string[];
  /** Search the local networks; default true. */
  readonly discovery?: boolean;
  /** For tests. */
  readonly passLifeMs?: number;
  readonly networks?: NetworkSources;
}

/** Near addresses answer at once or not at all. */
const nearDialMsMax = 3000;

/** The pieces that know each other: made together, before libp2p starts to ask the gate. */
export class MeshParts {
  readonly key: Ed25519PrivateKey;
  readonly self: NodeId;
  readonly membership: Membership;
  readonly networks: TrustedNetworks;
  readonly doorkeeper: Doorkeeper;
  readonly admissions: Admissions;
  readonly links: Links;
  readonly gate: ConnectionGate;
  readonly gossip: Gossip;
  readonly verified: VerifiedRecords = new VerifiedRecords();
  readonly dialling: StayConnected;
  readonly clones: Clones;
  /** Nodes that an invite names, while it is being used: they are dialled anywhere, and not asked to admit us yet. */
  readonly joining: Set<NodeId> = new Set<NodeId>();
  /** Members that say they pass connections on. */
  readonly relays: Set<NodeId> = new Set<NodeId>();
  handlers: MeshHandlers | undefined;
  /** Called whenever a peer is, or still is, admitted. */
  admitted: ((node: NodeId) => void) | undefined;
  #node: Libp2pNode | undefined;
  readonly #config: MeshConfig;
  readonly #environment: Environment;

  constructor(key: Ed25519PrivateKey, membership: Membership, config: MeshConfig, environment: Environment) {
    this.key = key;
    this.self = selfOf(key);
    this.#config = config;
    this.#environment = environment;
    this.membership = membership;
    this.networks = new TrustedNetworks(membership, config.networks ?? systemNetworks, environment);
    this.doorkeeper = new Doorkeeper(membership, this.networks);
    this.admissions = new Admissions(environment.clock, node => this.announce(node));
    this.links = new Links(this.admissions);
    this.gossip = new Gossip(this.admissions, this.verified, environment);
    this.clones = new Clones(
      environment.clock,
      (host, port) => ownHosts().includes(host) && this.#isOwnPort(port),
      host => environment.log('error', cloneText(host)),
    );
    this.dialling = this.#makeDialling();
    this.gate = this.#makeGate();
  }

  static async make(config: MeshConfig, environment: Environment): Promise<MeshParts> {
    const key = await loadIdentity(config.identityFile);
    const membership = await Membership.load(
      {
        file: meshStateFile(config.identityFile),
        self: selfOf(key),
        key,
        nodeName: config.nodeName,
        meshName: config.mesh,
        passLifeMs: config.passLifeMs ?? passLifeMsDefault,
      },
      environment,
    );
    return new MeshParts(key, membership, config, environment);
  }

  #makeGate(): ConnectionGate {
    return new ConnectionGate({
      self: this.self,
      clock: this.#environment.clock,
      isServing: () => this.handlers !== undefined,
      isConnected: node => this.links.isConnected(node),
      isDirect: node => this.links.isDirect(node),
      isClosed: () => this.membership.mesh !== undefined,
      isAdmitted: node => this.admissions.isAdmitted(node),
      isRefused: node => this.admissions.state(node).kind === 'refused',
      isNear: host => isPrivateAddress(host) || isLoopbackAddress(host) || this.dialling.isNamedHost(host),
      isNamed: address => this.joining.size > 0 || this.dialling.isNamed(address),
      metSelf: host => this.clones.sighted(host),
    });
  }

  #makeDialling(): StayConnected {
    return new StayConnected(
      {
        self: this.self,
        peers: this.#config.peers,
        defaultPort: this.#config.defaultPort,
        port: () => this.#port(),
      },
      {
        isConnected: node => this.links.isConnected(node),
        isRefused: node => this.admissions.state(node).kind === 'refused',
        nodeAt: address => this.gate.nodeAt(address),
        dial: (addresses, node, signal) => this.#dial(addresses, node, signal),
      },
      this.#environment,
    );
  }

  get node(): Libp2pNode {
    if (this.#node === undefined) throw new Fault('INTERNAL', 'the mesh is not open');
    return this.#node;
  }

  async open(): Promise<void> {
    await this.networks.begin();
    this.#node = await startLibp2p({
      privateKey: this.key,
      port: this.#config.port,
      listen: this.#config.listen,
      gate: this.gate,
      gossip: this.gossip.service(),
      relay: this.#config.relay ?? false,
      announce: port => this.#announced(port),
      clock: this.#environment.clock,
    });
  }

  announce(node: NodeId): void {
    if (this.admissions.isAdmitted(node)) {
      for (const {remoteAddr} of this.links.connections(node)) this.gate.welcomed(remoteAddr);
    }
    const link = this.links.link(node);
    this.handlers?.linkChanged(node, link);
    if (link?.admitted === true) this.admitted?.(node);
  }

  listening(): Multiaddr[] {
    return this.node.services.listeners.addresses();
  }

  /** Another daemon on this machine listens elsewhere. */
  #isOwnPort(port: number | undefined): boolean {
    const own = this.listening().flatMap(address => hostPortOf(address)?.port ?? []);
    return port === undefined || own.length === 0 || own.includes(port);
  }

  /** How a peer came, from the connection alone. */
  arrivalOf({remoteAddr}: Pick<Connection, 'remoteAddr'>): Arrival {
    const address = hostPortOf(remoteAddr)?.host;
    return {address, isNamed: address !== undefined && this.dialling.isNamedHost(address)};
  }

  /** Opens a connection to a member, or a better one than there is. */
  async connect(node: NodeId, addresses: readonly Multiaddr[], signal: AbortSignal, force = false): Promise<void> {
    await this.node.dial(withNode(addresses, node), {signal, force});
  }

  /** libp2p believes a public address only when somebody else has confirmed it, but these are on our own interfaces. */
  #announced(port: number): string[] {
    const named = (this.#config.announce ?? []).flatMap(text => {
      const peer = parsePeer(text, port);
      if (peer === undefined) return [];
      if (peer.kind === 'multiaddr') return [peer.address.toString()];
      const isName = !/^[\d.]+$|:/u.test(peer.host);
      return [isName ? `/dns/${peer.host}/tcp/${peer.port}` : tcpMultiaddr(peer).toString()];
    });
    const own = Object.values(networkInterfaces()).flatMap(infos => infos ?? []);
    const open = own.filter(({address, internal}) => !internal && !isPrivateAddress(address));
    return [...named, ...open.map(({address}) => tcpMultiaddr({host: address, port}).toString())];
  }

  #port(): number {
    return this.listening().flatMap(address => hostPortOf(address) ?? [])[0]?.port ?? 0;
  }

  /** Near first, then through the relays, then whatever else was told: a far address may take long to say no. */
  async #dial(addresses: readonly Multiaddr[], node: NodeId | undefined, signal: AbortSignal): Promise<NodeId> {
    if (node === undefined) return nodeIdOf((await this.node.dial([...addresses], {signal})).remotePeer);
    const direct = addresses.filter(address => !isRelayed(address));
    const near = direct.filter(address => this.#isLikely(address));
    const far = direct.filter(address => !near.includes(address));
    const relayed = [...this.relayedAddresses(node), ...addresses.filter(isRelayed)];
    const steps = [near, relayed, far].filter(step => step.length > 0);
    let failure: unknown = new Fault('PEER_FAILED', 'no address to dial');
    for (const step of steps) {
      using limit = timeLimit(this.#environment.clock, nearDialMsMax, 'dialling a peer', signal);
      try {
        await this.connect(node, step, limit.signal);
        return node;
      } catch (error) {
        signal.throwIfAborted();
        failure = error;
      }
    }
    throw failure;
  }

  /** Where a member may be reached through the relays that this node is connected to. */
  relayedAddresses(node: NodeId): Multiaddr[] {
    if (this.membership.mesh === undefined) return [];
    return [...this.relays].flatMap(relay => {
      const connection = this.links.connection(relay);
      if (relay === node || connection?.direct !== true || !this.admissions.isAdmitted(relay)) return [];
      const address = this.links.dialable(relay).find(each => !isRelayed(each)) ?? connection.remoteAddr;
      return [...withNode([address], relay)].map(each => each.encapsulate('/p2p-circuit'));
    });
  }

  #isLikely(address: Multiaddr): boolean {
    const host = hostPortOf(address)?.host ?? '';
    return !isPrivateAddress(host) || this.networks.isHere(host) || this.dialling.isNamed(address);
  }
}

/** What a node trusts is kept beside its key. */
export function meshStateFile(identityFile: string): string {
  return `${identityFile.replace(/\.key$/u, '')}.mesh.json`;
}

function selfOf(key: Ed25519PrivateKey): NodeId {
  return nodeIdOf(peerIdFromString(key.publicKey.toString()));
}

function withNode(addresses: readonly Multiaddr[], node: NodeId): Multiaddr[] {
  return addresses.map(address =>
    address.getComponents().at(-1)?.name === 'p2p' ? address : address.encapsulate(`/p2p/${node}`),
  );
}
