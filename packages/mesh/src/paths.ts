import {multiaddr} from '@multiformats/multiaddr';
import {describeError, isNodeId, timeLimit} from '@hearsay/core';
import type {Environment, NodeId} from '@hearsay/core';
import {isRelayed, relayOf} from './addresses.ts';
import {leaseProtocol} from './lease-http.ts';
import type {MeshParts} from './mesh-parts.ts';

/** How often the paths are looked after: a relay that restarts is used again soon after it is back. */
const lookMs = 1500;

/** Relays on which this node can be reached at a time: the second takes over when the first goes. */
const reservationsWanted = 2;

/** A relayed peer is dialled directly from time to time: a port may have been opened, or somebody came home. */
const upgradeMs = 20_000;
const upgradeFirstMs = 1000;
const upgradeDialMsMax = 3000;

/** Keeps this node reachable through relays, and prefers direct paths where there are any. */
export class Paths implements AsyncDisposable {
  readonly #parts: MeshParts;
  readonly #isRelay: boolean;
  readonly #environment: Environment;
  readonly #upgradeAtMs = new Map<NodeId, number>();
  readonly #stop = new AbortController();
  #timer: Disposable | undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(parts: MeshParts, isRelay: boolean, environment: Environment) {
    this.#parts = parts;
    this.#isRelay = isRelay;
    this.#environment = environment;
    this.#schedule();
  }

  /** Relays on which this node can be reached now. */
  reservations(): readonly NodeId[] {
    const relays = this.#parts.listening().map(address => relayOf(address));
    return [...new Set(relays)].filter(isNodeId);
  }

  #schedule(): void {
    this.#timer = this.#environment.clock.after(lookMs, () => {
      this.#looking = this.#look().finally(() => {
        if (!this.#stop.signal.aborted) this.#schedule();
      });
    });
  }

  async #look(): Promise<void> {
    if (this.#parts.membership.mesh === undefined) return;
    try {
      if (!this.#isRelay) await this.#reserve();
      await this.#upgrade();
      await this.#closeIdle();
    } catch (error) {
      this.#environment.log('debug', 'looking after paths failed', {reason: describeError(error)});
    }
  }

  async #reserve(): Promise<void> {
    const {relays, links, admissions, node} = this.#parts;
    if (relays.size === 0) return; // as nearly always, and to ask libp2p where it listens is dear
    const held = this.reservations();
    const wanted = [...relays]
      .filter(relay => links.isDirect(relay) && admissions.isAdmitted(relay) && !held.includes(relay))
      .slice(0, Math.max(0, reservationsWanted - held.length));
    for (const relay of wanted) {
      const connection = links.connection(relay);
      if (connection === undefined) continue;
      const text = connection.remoteAddr.toString().replace(/\/p2p\/[^/]+$/u, '');
      try {
        await node.services.listeners.reserve(multiaddr(`${text}/p2p/${relay}`));
        this.#environment.log('info', 'other members can reach this node through a relay', {relay});
      } catch (error) {
        this.#environment.log('debug', 'a relay gave no reservation', {relay, reason: describeError(error)});
      }
    }
  }

  async #upgrade(): Promise<void> {
    const {links} = this.#parts;
    const nowMs = this.#environment.clock.monotonicMs();
    const relayed = links.admitted().filter(node => !links.isDirect(node));
    for (const node of this.#upgradeAtMs.keys()) if (!relayed.includes(node)) this.#upgradeAtMs.delete(node);
    for (const node of relayed) {
      const dueMs = this.#upgradeAtMs.get(node);
      this.#upgradeAtMs.set(node, dueMs ?? nowMs + upgradeFirstMs);
      if (dueMs === undefined || nowMs < dueMs) continue;
      this.#upgradeAtMs.set(node, nowMs + upgradeMs);
      await this.#dialDirectly(node);
    }
  }

  async #dialDirectly(node: NodeId): Promise<void> {
    const {links} = this.#parts;
    const direct = links.dialable(node).filter(address => !isRelayed(address));
    if (direct.length === 0) return;
    using limit = timeLimit(this.#environment.clock, upgradeDialMsMax, 'dialling directly', this.#stop.signal);
    try {
      await this.#parts.connect(node, direct, limit.signal, true);
      this.#environment.log('info', 'a relayed node is now reached directly', {node});
    } catch {
      return; // it stays relayed, and is tried again later
    }
  }

  /** A relayed connection beside a direct one ends when no request runs on it any more. */
  async #closeIdle(): Promise<void> {
    const {links} = this.#parts;
    for (const node of links.admitted().filter(each => links.isDirect(each))) {
      for (const connection of links.connections(node)) {
        if (connection.direct || connection.streams.some(({protocol}) => protocol === leaseProtocol)) continue;
        using limit = timeLimit(this.#environment.clock, upgradeDialMsMax, 'closing a connection', this.#stop.signal);
        await connection.close({signal: limit.signal}).catch(() => undefined);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#timer?.[Symbol.dispose]();
    await this.#looking;
  }
}
