import type {Ed25519PrivateKey} from '@libp2p/interface';
import {addRevocation, decodeStatement, encodeStatement, Fault, isRevocation, judgeStanding} from '@hearsay/core';
import {revocationsMax, shortNode, shouldRenew} from '@hearsay/core';
import type {ChainedStatement, Environment, NodeId, Role, SignedStatement, Standing, Statement} from '@hearsay/core';
import {check, checkAll} from './check-statements.ts';
import {signStatement} from './identity.ts';
import {Invites} from './invites.ts';
import {contactsMax, loadMeshState, membersMax, saveMeshState} from './mesh-state.ts';
import type {MeshState} from './mesh-state.ts';

/** A machine may be off for a summer; after that it needs a new invite. */
export const passLifeMsDefault: number = 90 * 24 * 60 * 60_000;

const meshSecretBytes = 32;
const tooMany = `a revocation was not kept: there are ${revocationsMax} already; lock a new mesh`;

export interface MembershipConfig {
  readonly file: string;
  readonly self: NodeId;
  readonly key: Ed25519PrivateKey;
  readonly nodeName: string;
  readonly meshName: string;
  readonly passLifeMs: number;
}

/** What this node belongs to and whom it believes; the one owner of the file that says so. */
export class Membership {
  readonly invites: Invites;
  readonly #config: MembershipConfig;
  readonly #environment: Environment;
  readonly #chains = new Map<NodeId, readonly SignedStatement[]>();
  readonly #revoked = new Map<NodeId, string>();
  #state: MeshState;
  #saving: Promise<void> = Promise.resolve();

  private constructor(config: MembershipConfig, environment: Environment, state: MeshState) {
    this.#config = config;
    this.#environment = environment;
    this.#state = state;
    this.invites = new Invites(this, environment);
  }

  static async load(config: MembershipConfig, environment: Environment): Promise<Membership> {
    const membership = new Membership(config, environment, await loadMeshState(config.file));
    membership.#remember(membership.#state.revocations);
    return membership;
  }

  get state(): MeshState {
    return this.#state;
  }

  /** The node id of the founder; undefined while this node is open to its LAN. */
  get mesh(): NodeId | undefined {
    return this.#state.closed?.mesh;
  }

  get meshName(): string {
    return this.#state.closed?.meshName ?? this.#config.meshName;
  }

  get chain(): readonly SignedStatement[] {
    return this.#state.closed?.chain ?? [];
  }

  /** Of a closed mesh. */
  get secret(): Uint8Array | undefined {
    return this.#state.closed?.secret;
  }

  get revocations(): readonly ChainedStatement[] {
    return this.#state.revocations;
  }

  /** Changes what is kept, and resolves when it is on the disk. */
  async update(change: (state: MeshState) => Partial<MeshState>): Promise<void> {
    this.#state = {...this.#state, ...change(this.#state)};
    const saved = this.#saving.then(() => saveMeshState(this.#config.file, this.#state));
    this.#saving = saved.catch(() => undefined); // told to whoever asked for the change; the next one tries again
    await saved;
  }

  ownStanding(): Standing {
    return this.standing(this.#config.self, this.chain);
  }

  /** Whether a node that shows these passes belongs to this mesh. */
  standing(node: NodeId, chain: readonly SignedStatement[]): Standing {
    const {mesh} = this;
    if (mesh === undefined) return {kind: 'stranger', code: 'none'};
    return this.#judge(mesh, node, chain);
  }

  #judge(mesh: NodeId, node: NodeId, chain: readonly SignedStatement[]): Standing {
    const checked = checkAll(chain);
    if (checked === undefined) return {kind: 'stranger', code: 'forged'};
    const revoked = new Set(this.#revoked.keys());
    return judgeStanding({mesh, node, chain: checked, revoked, wallMs: this.#environment.clock.wallMs()});
  }

  /** Remembers the passes of a member that was admitted by them. */
  async met(node: NodeId, chain: readonly SignedStatement[], standing: Standing): Promise<void> {
    if (standing.kind !== 'member') return;
    this.#chains.set(node, chain);
    const [own] = chain;
    const name = own === undefined ? '' : decodeStatement(own.payload).name;
    const {role} = standing;
    const expiresAtMs = standing.expiresAtMs === Infinity ? 0 : standing.expiresAtMs;
    const known = this.#state.members.find(member => member.node === node);
    if (known?.expiresAtMs === expiresAtMs && known.role === role && known.hasLeft !== true) return;
    const member = {node, name: name || (known?.name ?? ''), role, expiresAtMs};
    await this.update(({members}) => ({
      members: [member, ...members.filter(other => other.node !== node)].slice(0, membersMax),
    }));
  }

  /** Nothing is taken from a member that says so: its pass stays good, and it can still be revoked. */
  async left(node: NodeId): Promise<void> {
    const known = this.#state.members.find(member => member.node === node);
    if (known === undefined || known.hasLeft === true) return;
    const gone = {...known, hasLeft: true};
    await this.update(({members}) => ({members: members.map(each => (each.node === node ? gone : each))}));
  }

  /** The others have their names in their passes, and the founder needs none. */
  async founderIsCalled(name: string): Promise<void> {
    const known = this.#state.members.find(({node}) => node === this.mesh);
    if (known === undefined || name === '' || known.name === name) return;
    await this.update(({members}) => ({members: members.map(each => (each === known ? {...known, name} : each))}));
  }

  /** Judges a member again by what it showed last: passes end, and revocations come. */
  standingOf(node: NodeId): Standing {
    return this.standing(node, this.#chains.get(node) ?? []);
  }

  isRevoked(node: NodeId): boolean {
    return this.#revoked.has(node);
  }

  /** A member that a person means, by its name, its id, or the end of that. Throws BAD_REQUEST. */
  find(which: string): {readonly node: NodeId; readonly name: string} {
    const wanted = which.toLowerCase();
    const known = this.#state.members.filter(({node}) => !this.#revoked.has(node));
    const found = known.filter(
      ({node, name}) => name.toLowerCase() === wanted || node === which || (which.length >= 4 && node.endsWith(which)),
    );
    const [only, ...more] = found;
    if (only !== undefined && more.length === 0) return only;
    const list = (found.length > 0 ? found : known).map(({name, node}) => `${name} (${node.slice(-8)})`).join(', ');
    const what =
      found.length > 0
        ? `${which} names several members: ${list}`
        : `no member is called ${which}; there are ${list || 'none'}`;
    throw new Fault('BAD_REQUEST', what);
  }

  /** When this node's own membership ends; Infinity where it does not. */
  expiresAtMs(): number {
    const ends = this.chain.map(({payload}) => decodeStatement(payload));
    return Math.min(Infinity, ...ends.map(pass => (pass.kind === 'pass' ? pass.expiresAtMs : 0)));
  }

  roleOf([own]: readonly SignedStatement[]): Role | undefined {
    const pass = own === undefined ? undefined : decodeStatement(own.payload);
    return pass?.kind === 'pass' ? pass.role : undefined;
  }

  /** Makes this node the founder of a closed mesh. */
  async found(): Promise<void> {
    const {self, meshName} = this.#config;
    const secret = this.#environment.random.bytes(meshSecretBytes);
    await this.update(() => ({
      closed: {mesh: self, meshName, chain: [], secret},
      members: [],
      revocations: [],
      invites: [],
    }));
    this.#revoked.clear();
  }

  /** Belongs to a mesh from now on. Throws BAD_REQUEST when the passes do not say so. */
  async enter(
    mesh: NodeId,
    meshName: string,
    chain: readonly SignedStatement[],
    meshSecret?: Uint8Array,
  ): Promise<void> {
    const standing = this.#judge(mesh, this.#config.self, chain);
    if (standing.kind !== 'member') throw new Fault('PEER_FAILED', 'the pass that came does not admit this node');
    const stays = this.mesh === mesh;
    const secret = meshSecret ?? (stays ? this.secret : undefined);
    await this.update(state => ({
      closed: {mesh, meshName, chain, secret},
      ...(stays ? {} : {members: [], revocations: [], invites: [], contacts: state.contacts}),
    }));
    if (!stays) this.#revoked.clear();
  }

  async leave(): Promise<void> {
    this.#revoked.clear();
    this.#chains.clear();
    await this.update(() => ({closed: undefined, revocations: [], invites: [], members: [], contacts: []}));
  }

  /** Throws BAD_REQUEST when this node is no keeper. */
  mustBeKeeper(to: string): void {
    const standing = this.ownStanding();
    if (standing.kind === 'member' && standing.role === 'keeper') return;
    if (this.mesh === undefined) {
      throw new Fault('BAD_REQUEST', `this mesh is open to its LAN; close it first with: hearsay lock`);
    }
    const keepers = this.#state.members
      .filter(({role}) => role === 'keeper')
      .map(({name, node}) => name || shortNode(node));
    const where = keepers.length === 0 ? 'a keeper' : keepers.join(' or ');
    throw new Fault('BAD_REQUEST', `this node may not ${to}; do it on ${where}`);
  }

  /** A new pass for a node, with everything that shows that this node may give it. */
  issue(node: NodeId, name: string, role: Role): readonly SignedStatement[] {
    const {mesh} = this;
    if (mesh === undefined) throw new Fault('INTERNAL', 'an open mesh has no passes');
    const expiresAtMs = this.#environment.clock.wallMs() + this.#config.passLifeMs;
    const pass = this.#sign({kind: 'pass', mesh, node, name, role, expiresAtMs});
    return [pass, ...this.chain];
  }

  #sign(statement: Statement): SignedStatement {
    return signStatement(this.#config.key, this.#config.self, encodeStatement(statement));
  }

  isDueForRenewal(): boolean {
    const standing = this.ownStanding();
    const {clock} = this.#environment;
    return standing.kind === 'member' && shouldRenew(standing.expiresAtMs, this.#config.passLifeMs, clock.wallMs());
  }

  /** Adds those that count. Returns whether any was new. */
  async revoke(revocations: readonly ChainedStatement[]): Promise<boolean> {
    const {mesh} = this;
    if (mesh === undefined) return false;
    let kept = this.#state.revocations;
    const seen = new Set(this.#revoked.keys());
    for (const revocation of revocations) {
      const checked = check(revocation.statement);
      const chain = checkAll(revocation.chain);
      if (checked === undefined || chain === undefined || seen.has(checked.statement.node)) continue;
      if (!isRevocation(checked, chain, mesh)) continue;
      seen.add(checked.statement.node);
      const more = addRevocation(kept, revocation, mesh);
      if (more === undefined) this.#environment.log('error', tooMany, {name: checked.statement.name});
      kept = more ?? kept;
    }
    if (kept === this.#state.revocations) return false;
    this.#remember(kept);
    await this.update(() => ({revocations: kept}));
    return true;
  }

  #remember(revocations: readonly ChainedStatement[]): void {
    this.#revoked.clear();
    for (const {statement} of revocations) {
      const {node, name} = decodeStatement(statement.payload);
      this.#revoked.set(node, name);
    }
  }

  makeRevocation(node: NodeId, name: string): ChainedStatement {
    const {mesh} = this;
    if (mesh === undefined) throw new Fault('INTERNAL', 'an open mesh has nobody to revoke');
    return {statement: this.#sign({kind: 'revocation', mesh, node, name}), chain: this.chain};
  }

  /** Where a member that others may reach was met. */
  async contact(node: NodeId, addresses: readonly string[]): Promise<void> {
    const known = this.#state.contacts.find(contact => contact.node === node);
    if (known?.addresses.join(' ') === addresses.join(' ')) return;
    await this.update(({contacts}) => ({
      contacts: [{node, addresses}, ...contacts.filter(contact => contact.node !== node)].slice(0, contactsMax),
    }));
  }

  /** Who is out for good, and how it was called. */
  revoked(): ReadonlyMap<NodeId, string> {
    return this.#revoked;
  }
}
