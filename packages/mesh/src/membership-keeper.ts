import {multiaddr} from '@multiformats/multiaddr';
import {describeError} from '@hearsay/core';
import type {ChainedStatement, Environment, NodeId} from '@hearsay/core';
import type {MembersTalk} from './members-talk.ts';
import type {MeshParts} from './mesh-parts.ts';

/** How often everybody who is admitted is judged anew: passes end, and networks change, without an event. */
const judgeMs = 3000;

/** When a mesh is closed, all are told within this time, and only then they ask each other for passes. */
const settleMs = 1500;
/** And after this, whoever has shown none is no member. */
const graceMs = 4000;

/** How often it is looked whether the pass should be renewed. */
const renewCheckMs = 60_000;

export type Rejudgement = 'at once' | 'gently' | 'by invite';

export interface KeeperFacts {
  /** Begins an exchange with an admitted peer. */
  readonly exchange: (peer: NodeId) => void;
  /** The node belongs to a mesh of another name now. */
  readonly moved: () => void;
}

/** Makes changes of membership true: lets go whoever is out, asks in whoever may come, and renews this node's pass. */
export class MembershipKeeper implements AsyncDisposable {
  readonly #parts: MeshParts;
  readonly #talk: MembersTalk;
  readonly #facts: KeeperFacts;
  readonly #environment: Environment;
  readonly #stop = new AbortController();
  readonly #tasks = new Set<Promise<void>>();
  #graceUntilMs = -Infinity;
  #meshName: string;

  constructor(parts: MeshParts, talk: MembersTalk, facts: KeeperFacts, environment: Environment) {
    this.#parts = parts;
    this.#talk = talk;
    this.#facts = facts;
    this.#environment = environment;
    this.#meshName = parts.membership.meshName;
  }

  start(): void {
    for (const {node, addresses} of this.#parts.membership.state.contacts) {
      this.#parts.dialling.keep(
        node,
        addresses.map(address => multiaddr(address)),
      );
    }
    this.#spawn(this.#repeat(judgeMs, () => this.#judgeAll()));
    this.#spawn(this.#repeat(renewCheckMs, () => this.#renew()));
  }

  /**
   * After a change. `gently` first gives everybody the time to show its passes; `by invite` does not, because nobody
   * who was admitted before has any, and looks who else is here by them.
   */
  async rejudge(how: Rejudgement): Promise<void> {
    const {admissions, membership} = this.#parts;
    const {clock} = this.#environment;
    if (membership.meshName !== this.#meshName) {
      this.#meshName = membership.meshName;
      this.#facts.moved();
    }
    if (how !== 'gently') {
      await this.#judgeAll();
      admissions.pardon();
      if (how === 'by invite') this.#spawn(this.#settle());
      return;
    }
    this.#graceUntilMs = clock.monotonicMs() + graceMs;
    admissions.pardon();
    this.#spawn(this.#settle());
  }

  async #settle(): Promise<void> {
    await this.#environment.clock.sleep(settleMs, this.#stop.signal);
    const {links} = this.#parts;
    for (const node of links.nodes()) this.#facts.exchange(node);
    this.#parts.admissions.pardon();
  }

  async heard(revocations: readonly ChainedStatement[], from: NodeId): Promise<void> {
    try {
      if (!(await this.#parts.membership.revoke(revocations))) return;
      await this.#talk.spread(revocations, from);
      await this.rejudge('at once');
    } catch (error) {
      this.#log('revocations could not be kept', error);
    }
  }

  async contact(node: NodeId, addresses: readonly string[]): Promise<void> {
    try {
      await this.#parts.membership.contact(node, addresses);
    } catch (error) {
      this.#log('the address of a member could not be kept', error);
    }
  }

  async founderIsCalled(name: string): Promise<void> {
    try {
      await this.#parts.membership.founderIsCalled(name);
    } catch (error) {
      this.#log('the name of the founder could not be kept', error);
    }
  }

  async #judgeAll(): Promise<void> {
    const {links, doorkeeper, admissions, networks} = this.#parts;
    await networks.begin(); // a machine may get its first network after the daemon has started
    for (const node of links.admitted()) {
      const connection = links.connection(node);
      if (connection === undefined) continue;
      const judgement = await doorkeeper.judgeAgain(node, this.#parts.arrivalOf(connection));
      const isRevoked = this.#parts.membership.isRevoked(node);
      const isInGrace = this.#environment.clock.monotonicMs() < this.#graceUntilMs;
      if (judgement.kind === 'admit' || (isInGrace && !isRevoked)) continue;
      this.#environment.log('info', 'a node is admitted no longer', {node, reason: judgement.reason});
      admissions.refuse(node, judgement.reason);
      for (const each of links.connections(node)) each.abort(new Error('not admitted any more'));
    }
  }

  async #renew(): Promise<void> {
    const {membership, links} = this.#parts;
    if (membership.mesh === undefined || !membership.isDueForRenewal()) return;
    const keepers = membership.state.members.filter(({role, node}) => role === 'keeper' && links.isConnected(node));
    // The founder first: its passes need no others.
    const sorted = keepers.toSorted((a, b) => Number(b.node === membership.mesh) - Number(a.node === membership.mesh));
    for (const {node} of sorted) {
      const connection = links.connection(node);
      if (connection === undefined) continue;
      try {
        const answer = await this.#talk.ask(connection, {kind: 'renew'}, this.#stop.signal);
        if (answer.kind !== 'welcome' || answer.mesh !== membership.mesh) continue;
        await membership.enter(answer.mesh, membership.meshName, answer.chain, answer.meshSecret);
        this.#environment.log('info', 'the pass of this node was renewed', {by: node});
        for (const peer of links.admitted()) this.#facts.exchange(peer);
        return;
      } catch (error) {
        this.#log('a keeper did not renew the pass of this node', error);
      }
    }
  }

  async #repeat(ms: number, run: () => Promise<void>): Promise<void> {
    for (;;) {
      await this.#pause(ms);
      try {
        await run();
      } catch (error) {
        this.#log('looking after the membership failed', error);
      }
    }
  }

  /** By `after`, which does not keep a process alive. */
  async #pause(ms: number): Promise<void> {
    this.#stop.signal.throwIfAborted();
    const passed = Promise.withResolvers<void>();
    const timer = this.#environment.clock.after(ms, passed.resolve);
    const stop = (): void => passed.reject(this.#stop.signal.reason);
    this.#stop.signal.addEventListener('abort', stop, {once: true});
    await passed.promise.finally(() => {
      timer[Symbol.dispose]();
      this.#stop.signal.removeEventListener('abort', stop);
    });
  }

  #spawn(task: Promise<void>): void {
    const ended = task.catch(error => this.#log('looking after the membership ended', error));
    const kept = ended.finally(() => this.#tasks.delete(kept));
    this.#tasks.add(kept);
  }

  #log(message: string, error: unknown): void {
    if (!this.#stop.signal.aborted) this.#environment.log('warn', message, {reason: describeError(error)});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#tasks);
  }
}
