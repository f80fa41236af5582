import {lookup} from 'node:dns/promises';
import {isIP} from 'node:net';
import type {Multiaddr} from '@multiformats/multiaddr';
import {describeError, isLoopbackAddress, timeLimit} from '@hearsay/core';
import type {Environment, NodeId} from '@hearsay/core';
import {formatHostPort, hostPortOf, ownHosts, parsePeer, tcpMultiaddr} from './addresses.ts';
import type {NamedPeer} from './addresses.ts';
import {Unanswered} from './unanswered.ts';

/** The lower id dials at once; the other only when nothing came of that, for instance because of a firewall. */
const secondDialerMs = 700;

/** Near addresses, then relays, then far ones, each with a limit of its own. */
const dialMsMax = 10_000;

/** Waiting times between attempts for a peer that a person named, or that was here before. The last one repeats. */
const retryMs = [500, 1000, 2000, 4000, 8000, 10_000] as const;

/** How often it is looked whether a named peer is still connected; a dial costs nothing compared with this. */
const watchMs = 1000;

/** Attempts to get back a peer that went away, about five minutes; after that it must be seen or named again. */
const lostAttemptsMax = 35;

/** Dials that are under way or waiting; more sightings than this at once are dropped and come again. */
const dialsMax = 256;

export interface StayConnectedConfig {
  readonly self: NodeId;
  readonly peers: readonly string[];
  readonly defaultPort: number;
  /** Where this node itself listens, so that a list of peers may be the same file on every machine. */
  readonly port: () => number;
}

export interface Dialer {
  readonly isConnected: (node: NodeId) => boolean;
  /** True for nodes that were refused a short while ago. */
  readonly isRefused: (node: NodeId) => boolean;
  /** Who answered at an address when it was last dialled. */
  readonly nodeAt: (address: Multiaddr) => NodeId | undefined;
  /** Addresses of one peer; without `node` whoever answers. */
  readonly dial: (addresses: readonly Multiaddr[], node: NodeId | undefined, signal: AbortSignal) => Promise<NodeId>;
}

/** Dials whoever is seen, heard of, named, or was lost. libp2p itself dials nobody and gives up on lost peers. */
export class StayConnected implements AsyncDisposable {
  /** Who announces itself here and does not answer. */
  readonly unanswered: Unanswered;
  readonly #config: StayConnectedConfig;
  readonly #dialer: Dialer;
  readonly #environment: Environment;
  readonly #stop = new AbortController();
  readonly #dialling = new Set<NodeId>();
  readonly #regaining = new Set<NodeId>();
  readonly #kept = new Map<NodeId, readonly Multiaddr[]>();
  readonly #named: readonly NamedPeer[];
  readonly #namedAddresses = new Map<string, readonly string[]>();
  readonly #tasks = new Set<Promise<void>>();

  constructor(config: StayConnectedConfig, dialer: Dialer, environment: Environment) {
    this.#config = config;
    this.#dialer = dialer;
    this.#environment = environment;
    this.unanswered = new Unanswered(environment.clock);
    const named = config.peers.flatMap(text => parsePeer(text, config.defaultPort) ?? []);
    this.#named = [...new Map(named.map(peer => [keyOf(peer), peer])).values()];
  }

  start(): void {
    for (const peer of this.#named) this.#spawn(this.#keepNamed(peer));
  }

  /** True for addresses of peers that a person named, as they were resolved last. */
  isNamed(address: Multiaddr): boolean {
    const hostPort = hostPortOf(address);
    if (hostPort === undefined) return false;
    const text = formatHostPort(hostPort);
    return [...this.#namedAddresses.values()].some(addresses => addresses.includes(text));
  }

  /** As `isNamed`, for whoever comes from there by another port. Of an inbound connection no zone is known. */
  isNamedHost(host: string): boolean {
    const hosts = [...this.#namedAddresses.values()].flat().map(text => withoutZone(hostOf(text)));
    return hosts.includes(withoutZone(host));
  }

  /** A member that everybody can reach: the way back into the mesh, so it is dialled for ever. */
  keep(node: NodeId, addresses: readonly Multiaddr[]): void {
    const isNew = !this.#kept.has(node);
    this.#kept.set(node, addresses);
    if (isNew) this.#spawn(this.#keepNode(node));
  }

  /** Ends every `keep`. */
  release(): void {
    this.#kept.clear();
  }

  async #keepNode(node: NodeId): Promise<void> {
    for (;;) {
      const addresses = this.#kept.get(node);
      if (addresses === undefined) return;
      if (!this.#isNeedless(node) && !this.#dialling.has(node)) {
        this.#dialling.add(node);
        await this.#dialInTurn(node, addresses).finally(() => this.#dialling.delete(node));
      }
      await this.#environment.clock.sleep(watchMs, this.#stop.signal);
    }
  }

  /** A peer announced itself on the LAN: dial it unless that is needless, and note whether it answers. */
  sighted(node: NodeId, addresses: readonly Multiaddr[]): void {
    if (this.#isNeedless(node)) this.unanswered.answered(node); // it may have come by itself
    this.#dialOnce(node, async () => {
      await this.#dialInTurn(node, addresses);
      if (this.#isNeedless(node)) this.unanswered.answered(node);
      else this.unanswered.failed(node, addresses);
    });
  }

  /** Another node told where a peer is, which need not lead there from here: dial it unless that is needless. */
  told(node: NodeId, addresses: readonly Multiaddr[]): void {
    this.#dialOnce(node, () => this.#dialInTurn(node, addresses));
  }

  #dialOnce(node: NodeId, dial: () => Promise<void>): void {
    if (this.#dialling.has(node) || this.#dialling.size >= dialsMax || this.#isNeedless(node)) return;
    this.#dialling.add(node);
    this.#spawn(dial().finally(() => this.#dialling.delete(node)));
  }

  /** An admitted peer went away, or a member told of one: try for a while, also if nobody sees it. */
  pursue(node: NodeId, addresses: readonly Multiaddr[]): void {
    if (addresses.length === 0 || this.#regaining.has(node) || this.#regaining.size >= dialsMax) return;
    this.#regaining.add(node);
    this.#spawn(this.#regain(node, addresses).finally(() => this.#regaining.delete(node)));
  }

  #isNeedless(node: NodeId): boolean {
    return node === this.#config.self || this.#dialer.isConnected(node) || this.#dialer.isRefused(node);
  }

  async #dialInTurn(node: NodeId, addresses: readonly Multiaddr[]): Promise<void> {
    if (this.#config.self > node) await this.#environment.clock.sleep(secondDialerMs, this.#stop.signal);
    if (!this.#isNeedless(node)) await this.#dial(addresses, node);
  }

  async #regain(node: NodeId, addresses: readonly Multiaddr[]): Promise<void> {
    for (let attempt = 0; attempt < lostAttemptsMax; attempt++) {
      await this.#environment.clock.sleep(waitMs(attempt), this.#stop.signal);
      if (!this.#isNeedless(node)) await this.#dialInTurn(node, addresses);
      if (this.#isNeedless(node)) return;
    }
  }

  /** For ever: a machine that a person named may be off for weeks. */
  async #keepNamed(peer: NamedPeer): Promise<void> {
    for (let failures = 0; ;) {
      const connected = await this.#tryNamed(peer);
      if (connected) failures = 0;
      await this.#environment.clock.sleep(connected ? watchMs : waitMs(failures++), this.#stop.signal);
    }
  }

  /** True when there is nothing to do for now. The name is resolved each time: addresses change (R63). */
  async #tryNamed(peer: NamedPeer): Promise<boolean> {
    if (this.#isReached(this.#namedAddresses.get(keyOf(peer)) ?? [])) return true;
    let addresses: Multiaddr[];
    try {
      addresses = await resolvePeer(peer);
    } catch (error) {
      this.#log(`cannot resolve the named peer ${peer.text}`, error);
      return false;
    }
    const others = addresses.filter(address => !this.#isOwn(address));
    const texts = others.flatMap(address => hostPortOf(address) ?? []).map(formatHostPort);
    this.#namedAddresses.set(keyOf(peer), texts);
    if (others.length === 0 || this.#isReached(texts)) return true;
    const reached = await this.#dial(others, undefined);
    // A dial also fails when it meets a peer that is connected already by another address.
    return reached || this.#isReached(texts);
  }

  #isReached(addresses: readonly string[]): boolean {
    return addresses.some(text => {
      const parsed = parsePeer(text, this.#config.defaultPort);
      const node = parsed?.kind === 'host' ? this.#dialer.nodeAt(tcpMultiaddr(parsed)) : undefined;
      return node !== undefined && this.#isNeedless(node);
    });
  }

  #isOwn(address: Multiaddr): boolean {
    const hostPort = hostPortOf(address);
    if (hostPort === undefined || hostPort.port !== this.#config.port()) return false;
    return isLoopbackAddress(hostPort.host) || ownHosts().includes(hostPort.host);
  }

  async #dial(addresses: readonly Multiaddr[], node: NodeId | undefined): Promise<boolean> {
    using limit = timeLimit(this.#environment.clock, dialMsMax, 'dialling a peer', this.#stop.signal);
    try {
      await this.#dialer.dial(addresses, node, limit.signal);
      return true;
    } catch (error) {
      this.#log('cannot connect to a peer', error);
      return false;
    }
  }

  #log(message: string, error: unknown): void {
    if (!this.#stop.signal.aborted) this.#environment.log('debug', message, {reason: describeError(error)});
  }

  #spawn(task: Promise<void>): void {
    const ended = task.catch(error => this.#log('dialling stopped', error)).finally(() => this.#tasks.delete(ended));
    this.#tasks.add(ended);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#tasks);
  }
}

function waitMs(failures: number): number {
  return retryMs[Math.min(failures, retryMs.length - 1)] ?? 10_000;
}

function hostOf(text: string): string {
  return text.replace(/:\d+$/u, '').replace(/^\[(.*)\]$/u, '$1');
}

function withoutZone(host: string): string {
  return host.replace(/%.*$/u, '');
}

function keyOf(peer: NamedPeer): string {
  return peer.kind === 'host' ? formatHostPort({host: peer.host.toLowerCase(), port: peer.port}) : peer.text;
}

async function resolvePeer(peer: NamedPeer): Promise<Multiaddr[]> {
  if (peer.kind === 'multiaddr') return [peer.address];
  if (isIP(peer.host.replace(/%.*$/u, '')) !== 0) return [tcpMultiaddr(peer)];
  const found = await lookup(peer.host, {all: true});
  return found.map(({address}) => tcpMultiaddr({host: address, port: peer.port}));
}
