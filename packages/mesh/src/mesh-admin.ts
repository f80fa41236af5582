import {describeError, Fault, formatInvite, isNodeId, parseInvite, shortNode} from '@hearsay/core';
import type {Environment, InviteReport, MembersAnswer, MeshAdmin, MeshReport, NodeId} from '@hearsay/core';
import type {Connection} from '@libp2p/interface';
import {multiaddr} from '@multiformats/multiaddr';
import type {Multiaddr} from '@multiformats/multiaddr';
import {isRelayed, relayOf, withoutNode} from './addresses.ts';
import {memberReports} from './member-reports.ts';
import type {MembersTalk} from './members-talk.ts';
import type {Rejudgement} from './membership-keeper.ts';
import type {MeshParts} from './mesh-parts.ts';
import {mustBeSpared} from './must-be-spared.ts';

/** A dial may meet a connection that is just being refused, so joining tries more than once. */
const joinAttemptsMax = 5;
const joinPauseMs = 700;

/** Addresses in one invite. */
const inviteAddressesMax = 8;

/** Warned of this long before a pass ends that nobody renews. */
const passWarningMs = 14 * 24 * 60 * 60_000;

export interface AdminDeps {
  readonly parts: MeshParts;
  readonly talk: MembersTalk;
  readonly relay: boolean;
  readonly nodeName: string;
  readonly reservations: () => readonly NodeId[];
  /** Judges everybody anew. */
  readonly rejudge: (how: Rejudgement) => Promise<void>;
  /** Begins an exchange with a node that is connected. */
  readonly greet: (node: NodeId) => void;
  readonly environment: Environment;
}

/** Who may be in the mesh, as people change it on this node. */
export function meshAdmin(deps: AdminDeps): MeshAdmin {
  const {parts, talk, environment, rejudge} = deps;
  const {membership, networks, links} = parts;

  async function join(text: string, signal: AbortSignal): Promise<MeshReport> {
    const code = parseInvite(text);
    if (code.inviter === parts.self)
      throw new Fault('BAD_REQUEST', 'this invite was made here; use it on another node');
    if (membership.mesh !== undefined) {
      throw new Fault('BAD_REQUEST', 'this node belongs to a closed mesh already; leave it first with: hearsay leave');
    }
    const relays = code.addresses.map(each => relayOf(multiaddr(each))).filter(isNodeId);
    const involved = [code.inviter, ...relays];
    for (const node of involved) parts.joining.add(node);
    try {
      const addresses = code.addresses.map(each => multiaddr(each));
      const question = {kind: 'join', secret: code.secret, name: deps.nodeName} as const;
      const {connection, answer} = await askInviter(code.inviter, addresses, question, signal);
      const entering = membership.enter(answer.mesh, answer.meshName, answer.chain, answer.meshSecret);
      if (membership.mesh !== undefined) parts.handlers?.moved?.(); // before any member is told of what was heard here
      await entering;
      await membership.revoke(answer.revocations);
      if (connection.direct) await keep(code.inviter, withoutNode(connection.remoteAddr));
      for (const address of addresses.filter(isRelayed)) {
        const relay = relayOf(address);
        if (isNodeId(relay)) await keep(relay, withoutNode(address.decapsulate('/p2p-circuit')));
      }
    } finally {
      for (const node of involved) parts.joining.delete(node);
    }
    await rejudge('by invite');
    parts.handlers?.moved?.(); // again, as an exchange may have been under way with one that is out now
    for (const node of involved) deps.greet(node);
    return report();
  }

  /** The way back into the mesh, where no multicast leads. */
  async function keep(node: NodeId, address: Multiaddr): Promise<void> {
    await membership.contact(node, [address.toString()]);
    parts.dialling.keep(node, [address]);
  }

  async function askInviter(
    inviter: NodeId,
    addresses: readonly Multiaddr[],
    question: {readonly kind: 'join'; readonly secret: Uint8Array; readonly name: string},
    signal: AbortSignal,
  ): Promise<{connection: Connection; answer: Extract<MembersAnswer, {kind: 'welcome'}>}> {
    let failure: unknown;
    for (let attempt = 0; attempt < joinAttemptsMax; attempt += 1) {
      if (attempt > 0) await environment.clock.sleep(joinPauseMs, signal);
      try {
        await parts.connect(inviter, addresses, signal);
        const connection = links.connection(inviter);
        if (connection === undefined) continue;
        const answer = await talk.ask(connection, question, signal);
        if (answer.kind === 'welcome') return {connection, answer};
      } catch (error) {
        if (error instanceof Fault && error.code === 'BAD_REQUEST') throw error;
        failure = error;
        environment.log('debug', 'joining failed, trying again', {attempt, reason: describeError(error)});
      }
    }
    const where = addresses.map(address => withoutNode(address).toString()).join(', ');
    const message = `cannot reach the inviting node ${shortNode(inviter)} at ${where} (${describeError(failure)}); is it running, and are its port and address open to this machine?`;
    throw new Fault('PEER_FAILED', message, {cause: failure});
  }

  function inviteAddresses(): readonly string[] {
    const own = parts.node.getMultiaddrs().map(address => withoutNode(address));
    const direct = own.filter(address => !isRelayed(address));
    return [...direct, ...own.filter(isRelayed)].map(String).slice(0, inviteAddressesMax);
  }

  function report(): MeshReport {
    const {mesh} = membership;
    const wallMs = environment.clock.wallMs();
    const isConnected = (node: NodeId): boolean => links.isConnected(node);
    const members = memberReports(membership, {self: parts.self, nodeName: deps.nodeName, isConnected, wallMs});
    const invites = membership.invites.open().map((invite): InviteReport => ({
      id: invite.id,
      role: invite.role,
      expiresSeconds: Math.round((invite.expiresAtMs - wallMs) / 1000),
      code: undefined,
    }));
    return {
      mode: mesh === undefined ? 'lan' : 'members',
      mesh: membership.meshName,
      meshId: mesh,
      role: members[0]?.role,
      relay: deps.relay,
      relays: deps.reservations(),
      openTo: mesh === undefined ? networks.openTo() : [],
      members,
      invites,
      networks: networks.report(),
      warnings: warnings(wallMs),
    };
  }

  function warnings(wallMs: number): readonly string[] {
    const unknown = membership.mesh === undefined ? networks.untrusted() : [];
    const ends = membership.expiresAtMs();
    return [
      ...parts.clones.warnings(),
      ...parts.dialling.unanswered.warnings(),
      ...unknown.map(
        ({interface: name, subnets}) =>
          `the network ${subnets.join(', ')} (${name}) is not trusted, so nobody there is admitted; to change that: hearsay network trust ${name}`,
      ),
      ...(ends - wallMs < passWarningMs
        ? [
            `the pass of this node ends in ${Math.max(0, Math.round((ends - wallMs) / 3_600_000))} h and no keeper has renewed it`,
          ]
        : []),
    ];
  }

  return {
    report,
    join,
    async invite({role, lifeMs}) {
      membership.mustBeKeeper('invite');
      const {invite, secret} = await membership.invites.make(role, lifeMs);
      const code = formatInvite({inviter: parts.self, addresses: inviteAddresses(), secret});
      return {id: invite.id, role, expiresSeconds: Math.round(lifeMs / 1000), code};
    },
    async lock() {
      if (membership.mesh !== undefined) throw new Fault('BAD_REQUEST', 'this mesh is closed already');
      const present = links.admitted();
      await membership.found();
      const mesh = parts.self;
      await talk.toEach(present, async node => {
        const chain = membership.issue(node, parts.handlers?.nameOf?.(node) ?? '', 'member');
        await membership.met(node, chain, membership.standing(node, chain));
        return {kind: 'adopt', mesh, chain, meshSecret: membership.secret};
      });
      await rejudge('gently');
      return report();
    },
    async revoke(which) {
      membership.mustBeKeeper('revoke');
      if (membership.invites.open().some(({id}) => id === which)) {
        await membership.invites.drop(which);
        return `invite ${which}`;
      }
      if (which === parts.self || which.toLowerCase() === deps.nodeName.toLowerCase()) {
        throw new Fault('BAD_REQUEST', `${which} is this node; to go, run here: hearsay leave`);
      }
      const {node, name} = membership.find(which);
      if (node === membership.mesh) {
        throw new Fault('BAD_REQUEST', `${which} founded this mesh, and a founder cannot be revoked; lock a new mesh`);
      }
      const revocation = membership.makeRevocation(node, name);
      await membership.revoke([revocation]);
      if (!membership.isRevoked(node)) {
        throw new Fault(
          'BAD_REQUEST',
          'too many nodes are revoked already; lock a new mesh: hearsay leave, hearsay lock',
        );
      }
      const told = talk.spread([revocation], node);
      await rejudge('at once');
      await told;
      return name === '' ? shortNode(node) : `${name} (${shortNode(node)})`;
    },
    async leave({force} = {force: false}) {
      if (membership.mesh === undefined) throw new Fault('BAD_REQUEST', 'this node belongs to no closed mesh');
      const present = links.admitted();
      const isConnected = (node: NodeId): boolean => present.includes(node);
      const wallMs = environment.clock.wallMs();
      if (!force) mustBeSpared(membership, {self: parts.self, isConnected, wallMs});
      await talk.toEach(present, async () => ({kind: 'leave'}));
      const leaving = membership.leave();
      parts.handlers?.moved?.(); // before anybody outside is told of what was heard here
      await leaving;
      parts.dialling.release();
      for (const node of links.nodes()) for (const each of links.connections(node)) each.abort(new Error('left'));
      await rejudge('at once');
      parts.handlers?.moved?.(); // again, as an exchange may have been under way
      return report();
    },
    async trust(which) {
      await networks.trust(which);
      await rejudge('at once');
      return report();
    },
    async forget(which) {
      await networks.forget(which);
      await rejudge('at once');
      return report();
    },
  };
}
