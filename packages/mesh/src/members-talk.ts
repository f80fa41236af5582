import type {Connection, Stream} from '@libp2p/interface';
import {decodeMembersAnswer, decodeMembersQuestion, decodeStatement, describeError} from '@hearsay/core';
import {encodeMembersAnswer, encodeMembersQuestion, exchangeBytesMax, Fault, shortNode} from '@hearsay/core';
import type {ChainedStatement, Environment, MembersAnswer, MembersQuestion, NodeId} from '@hearsay/core';
import {converse} from './conversation.ts';
import type {NextFrame} from './conversation.ts';
import {nodeIdOf} from './identity.ts';
import type {MeshParts} from './mesh-parts.ts';

export const membersProtocol = '/hearsay/members/1';

const talkMsMax = 5000;

export interface TalkFacts {
  /** Membership has changed, so that everybody is to be judged anew. */
  readonly changed: (why: 'entered' | 'revoked') => Promise<void>;
}

/** Questions about membership, one a stream: joining, renewing, locking, revoking, leaving. */
export class MembersTalk {
  readonly #parts: MeshParts;
  readonly #facts: TalkFacts;
  readonly #environment: Environment;

  constructor(parts: MeshParts, facts: TalkFacts, environment: Environment) {
    this.#parts = parts;
    this.#facts = facts;
    this.#environment = environment;
  }

  /** Asks on an open connection. Throws BAD_REQUEST with the reason when the answer is no. */
  async ask(connection: Connection, question: MembersQuestion, signal?: AbortSignal): Promise<MembersAnswer> {
    let answer: MembersAnswer | undefined;
    const talk = async function* (next: NextFrame): AsyncGenerator<Uint8Array> {
      yield encodeMembersQuestion(question);
      answer = decodeMembersAnswer(await next());
    };
    const {clock} = this.#environment;
    const limits = {clock, frameBytesMax: exchangeBytesMax, msMax: talkMsMax, signal};
    await converse(await connection.newStream(membersProtocol, signal === undefined ? {} : {signal}), talk, limits);
    if (answer === undefined) throw new Fault('PEER_FAILED', 'the other node ended a conversation early');
    if (answer.kind === 'no') throw new Fault('BAD_REQUEST', answer.reason);
    return answer;
  }

  async answer(stream: Stream, connection: Connection): Promise<void> {
    const from = nodeIdOf(connection.remotePeer);
    const respond = async (frame: Uint8Array): Promise<MembersAnswer> => this.#respond(frame, from);
    const talk = async function* (next: NextFrame): AsyncGenerator<Uint8Array> {
      yield encodeMembersAnswer(await respond(await next()));
    };
    try {
      const {clock} = this.#environment;
      await converse(stream, talk, {clock, frameBytesMax: exchangeBytesMax, msMax: talkMsMax});
    } catch (error) {
      this.#environment.log('debug', 'a talk about membership broke', {from, reason: describeError(error)});
    }
  }

  /** Tells every peer that is connected, at once; the others hear it in the exchange when they are back. */
  async spread(revocations: readonly ChainedStatement[], except?: NodeId): Promise<void> {
    const peers = this.#parts.links.admitted().filter(node => node !== except);
    await this.toEach(peers, async () => ({kind: 'revoke', revocations}));
  }

  /** Asks many; who cannot be asked is left out. Returns who said yes. */
  async toEach(
    peers: readonly NodeId[],
    question: (node: NodeId) => Promise<MembersQuestion>,
  ): Promise<readonly NodeId[]> {
    const asked = peers.map(async node => {
      const connection = this.#parts.links.connection(node);
      if (connection === undefined) return [];
      try {
        await this.ask(connection, await question(node));
        return [node];
      } catch (error) {
        this.#environment.log('warn', 'a node could not be told', {node, reason: describeError(error)});
        return [];
      }
    });
    return (await Promise.all(asked)).flat();
  }

  async #respond(frame: Uint8Array, from: NodeId): Promise<MembersAnswer> {
    const question = decodeMembersQuestion(frame);
    const isAdmitted = this.#parts.admissions.isAdmitted(from);
    if (question.kind === 'join') return this.#join(question.secret, question.name, from);
    if (!isAdmitted) return {kind: 'no', reason: 'this node is no member here'};
    switch (question.kind) {
      case 'renew':
        return this.#renew(from);
      case 'adopt':
        return this.#adopt(question, from);
      case 'revoke':
        return this.#revoke(question.revocations, from);
      case 'leave':
        await this.#parts.membership.left(from);
        return {kind: 'done'};
    }
  }

  async #join(secret: Uint8Array, name: string, from: NodeId): Promise<MembersAnswer> {
    const {membership, links} = this.#parts;
    if (membership.isRevoked(from)) {
      const reason = 'this node was revoked, which is final; delete its key (node.key) to come back as a new node';
      return {kind: 'no', reason};
    }
    const invite = await membership.invites.take(secret, from);
    if (invite === undefined || membership.mesh === undefined) {
      return {kind: 'no', reason: 'the invite was used already, has expired, or was revoked; ask for another one'};
    }
    const chain = membership.issue(from, name, invite.role);
    const standing = membership.standing(from, chain);
    await membership.met(from, chain, standing);
    this.#environment.log('info', 'a node has joined with an invite', {node: from, invite: invite.id});
    return {
      kind: 'welcome',
      mesh: membership.mesh,
      meshName: membership.meshName,
      chain,
      revocations: membership.revocations,
      addresses: links.known(),
      meshSecret: membership.secret,
    };
  }

  async #renew(from: NodeId): Promise<MembersAnswer> {
    const {membership} = this.#parts;
    const own = membership.ownStanding();
    const known = membership.state.members.find(({node}) => node === from);
    const isAbove = membership.chain.some(({payload}) => decodeStatement(payload).node === from);
    if (own.kind !== 'member' || own.role !== 'keeper' || known === undefined || isAbove) {
      return {kind: 'no', reason: `node ${shortNode(this.#parts.self)} cannot renew this pass`};
    }
    const chain = membership.issue(from, known.name, known.role);
    const standing = membership.standing(from, chain);
    if (standing.kind !== 'member') return {kind: 'no', reason: 'the chain of passes would be too long'};
    await membership.met(from, chain, standing);
    const {mesh = from, meshName} = membership;
    return {kind: 'welcome', mesh, meshName, chain, revocations: [], addresses: [], meshSecret: membership.secret};
  }

  /** In an open mesh everybody on the LAN is believed, also that it is closed from now on. */
  async #adopt(
    {mesh, chain, meshSecret}: Extract<MembersQuestion, {kind: 'adopt'}>,
    from: NodeId,
  ): Promise<MembersAnswer> {
    const {membership} = this.#parts;
    if (membership.mesh !== undefined) return {kind: 'no', reason: 'this node belongs to a closed mesh already'};
    if (mesh !== from) return {kind: 'no', reason: 'only the founder of a mesh can take nodes into it'};
    await membership.enter(mesh, membership.meshName, chain, meshSecret);
    this.#environment.log('warn', 'the mesh is closed now; hearsay leave undoes it here', {by: from});
    await this.#facts.changed('entered');
    return {kind: 'done'};
  }

  async #revoke(revocations: readonly ChainedStatement[], from: NodeId): Promise<MembersAnswer> {
    if (await this.#parts.membership.revoke(revocations)) {
      await this.#facts.changed('revoked');
      void this.spread(revocations, from); // it logs what fails
    }
    return {kind: 'done'};
  }
}
