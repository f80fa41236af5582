import {createHash} from 'node:crypto';
import {Fault, hexFrom} from '@hearsay/core';
import type {Environment, NodeId, Role} from '@hearsay/core';
import {invitesMax} from './mesh-state.ts';
import type {MeshState, OpenInvite} from './mesh-state.ts';

/** Where invites are kept. */
export interface InviteKeeper {
  readonly state: MeshState;
  update(change: (state: MeshState) => Partial<MeshState>): Promise<void>;
}

/** The one-time invites of this node. Only hashes of their secrets are kept. */
export class Invites {
  readonly #keeper: InviteKeeper;
  readonly #environment: Environment;

  constructor(keeper: InviteKeeper, environment: Environment) {
    this.#keeper = keeper;
    this.#environment = environment;
  }

  async make(role: Role, lifeMs: number): Promise<{invite: OpenInvite; secret: Uint8Array}> {
    const {clock, random} = this.#environment;
    const secret = random.bytes(16);
    const expiresAtMs = clock.wallMs() + lifeMs;
    const invite = {id: hexFrom(random.bytes(3)), secretHash: hashOf(secret), role, expiresAtMs};
    const current = this.#current();
    if (current.length >= invitesMax) {
      throw new Fault('BAD_REQUEST', `${current.length} invites are open; revoke some: hearsay members`);
    }
    await this.#keeper.update(() => ({invites: [...current, invite]}));
    return {invite, secret};
  }

  /** Those that nobody has used. */
  open(): readonly OpenInvite[] {
    return this.#current().filter(({usedBy}) => usedBy === undefined);
  }

  /** Takes the one that the secret opens: for one node only, also when two come at the same moment. */
  async take(secret: Uint8Array, node: NodeId): Promise<OpenInvite | undefined> {
    const hash = hashOf(secret);
    const current = this.#current();
    const invite = current.find(({secretHash}) => secretHash === hash);
    if (invite === undefined || (invite.usedBy !== undefined && invite.usedBy !== node)) return undefined;
    const taken = current.map(each => (each === invite ? {...invite, usedBy: node} : each));
    await this.#keeper.update(() => ({invites: taken}));
    return invite;
  }

  async drop(id: string): Promise<void> {
    await this.#keeper.update(({invites}) => ({invites: invites.filter(invite => invite.id !== id)}));
  }

  #current(): readonly OpenInvite[] {
    const wallMs = this.#environment.clock.wallMs();
    return this.#keeper.state.invites.filter(({expiresAtMs}) => wallMs < expiresAtMs);
  }
}

function hashOf(secret: Uint8Array): string {
  return createHash('sha256').update(secret).digest('hex');
}
