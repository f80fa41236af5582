import type {ExchangeMessage, NodeId, RefusalWord} from '@hearsay/core';
import type {Membership} from './membership.ts';
import type {TrustedNetworks} from './trusted-networks.ts';

/** How a peer came: what the connection says, never what the peer does. */
export interface Arrival {
  /** Undefined when relayed. */
  readonly address: string | undefined;
  /** A person named this address on this node. */
  readonly isNamed: boolean;
}

export type Judgement =
  | {readonly kind: 'admit'}
  | {readonly kind: 'refuse'; readonly word: RefusalWord; readonly reason: string};

/** Decides who is admitted (law 8), in both modes, from what was proven and what the connection shows. */
export class Doorkeeper {
  readonly #membership: Membership;
  readonly #networks: TrustedNetworks;

  constructor(membership: Membership, networks: TrustedNetworks) {
    this.#membership = membership;
    this.#networks = networks;
  }

  /** At the greeting of a peer. */
  async judge(node: NodeId, greeting: ExchangeMessage, arrival: Arrival): Promise<Judgement> {
    const {mesh, name, member, refusal} = greeting;
    const known = JSON.stringify(name);
    // It has left while nobody could be told. Its passes are judged anew when it shows them again.
    const belongs = refusal === undefined ? member?.mesh === this.#membership.mesh : refusal !== 'open';
    if (!belongs) await this.#membership.left(node);
    if (refusal !== undefined && refusal !== 'mesh') return refuse(refusal, refusedThere[refusal]);
    if (this.#membership.mesh !== undefined) {
      if (member?.mesh !== this.#membership.mesh) return refuse('closed', notHere);
      return this.#judgeMember(node, member.chain);
    }
    const near = this.#judgeNeighbour(arrival);
    if (near.kind === 'refuse') return near;
    if (mesh !== this.#membership.meshName) {
      const whose = name === '' ? 'it belongs' : `${known} belongs`;
      const text = `${whose} to mesh ${JSON.stringify(mesh)}; set the same mesh.name on both nodes to let them meet`;
      return refuse('mesh', text);
    }
    return member === undefined ? near : refuse('open', refusedThere.closed);
  }

  /** Before the first word of ours: whoever comes from nowhere that we trust is not even greeted. */
  judgeArrival(arrival: Arrival): Judgement {
    return this.#membership.mesh === undefined ? this.#judgeNeighbour(arrival) : {kind: 'admit'};
  }

  /** Later on, when something has changed: passes end, networks change, people revoke. */
  async judgeAgain(node: NodeId, arrival: Arrival): Promise<Judgement> {
    if (this.#membership.mesh === undefined) return this.#judgeNeighbour(arrival);
    const standing = this.#membership.standingOf(node);
    return standing.kind === 'member' ? {kind: 'admit'} : refuseStranger(standing.code);
  }

  async #judgeMember(node: NodeId, chain: NonNullable<ExchangeMessage['member']>['chain']): Promise<Judgement> {
    const standing = this.#membership.standing(node, chain);
    if (standing.kind === 'stranger') return refuseStranger(standing.code);
    await this.#membership.met(node, chain, standing);
    return {kind: 'admit'};
  }

  #judgeNeighbour({address, isNamed}: Arrival): Judgement {
    if (address === undefined) return refuse('network', 'it comes through a relay, which only closed meshes use');
    if (isNamed) return {kind: 'admit'};
    const trust = this.#networks.judge(address);
    if (trust.kind === 'trusted') return {kind: 'admit'};
    const advice =
      trust.network === undefined ? 'use a closed mesh (hearsay lock)' : `hearsay network trust ${trust.network}`;
    return refuse('network', `${trust.why}; to admit it: ${advice}`);
  }
}

const notHere = 'it is no member of this mesh; run `hearsay invite` here and `hearsay join CODE` there';

const refusedThere: Readonly<Record<RefusalWord, string>> = {
  mesh: 'it belongs to a mesh of another name',
  closed: 'its mesh is closed; run `hearsay invite` there and `hearsay join CODE` here',
  open: 'it is open to its LAN, and this mesh is closed; run `hearsay invite` here and `hearsay join CODE` there',
  network: 'it does not trust the network between; run `hearsay network trust` there',
  revoked: 'this node was revoked from its mesh',
  expired: 'the pass of this node has expired; run `hearsay invite` there and `hearsay join CODE` here',
};

function refuse(word: RefusalWord, reason: string): Judgement {
  return {kind: 'refuse', word, reason};
}

function refuseStranger(code: 'none' | 'expired' | 'revoked' | 'forged'): Judgement {
  switch (code) {
    case 'none':
    case 'forged':
      return refuse('closed', notHere);
    case 'expired':
      return refuse('expired', 'its pass has expired; run `hearsay invite` here and `hearsay join CODE` there');
    case 'revoked':
      return refuse('revoked', 'it was revoked');
  }
}
