import {multiaddr} from '@multiformats/multiaddr';
import type {Multiaddr} from '@multiformats/multiaddr';
import type {Environment, ExchangeMessage, MeshHandlers, NodeId} from '@hearsay/core';
import {isRelayed} from './addresses.ts';
import {Exchange} from './exchange.ts';
import type {MembershipKeeper} from './membership-keeper.ts';
import type {MeshConfig, MeshParts} from './mesh-parts.ts';

export interface ExchangeDeps {
  readonly parts: MeshParts;
  readonly keeper: MembershipKeeper;
  readonly handlers: MeshHandlers;
  readonly config: MeshConfig;
}

/** The exchange of this node: what it tells, whom it lets in, and what becomes of what it hears. */
export function makeExchange({parts, keeper, handlers, config}: ExchangeDeps, environment: Environment): Exchange {
  const {dialling, doorkeeper, links, membership, relays} = parts;

  function learned(peer: NodeId, {name, relay = false, revocations = []}: ExchangeMessage): void {
    if (relay) relays.add(peer);
    else relays.delete(peer);
    if (revocations.length > 0) void keeper.heard(revocations, peer);
    if (membership.mesh === undefined || (!relay && peer !== membership.mesh)) return;
    if (peer === membership.mesh) void keeper.founderIsCalled(name);
    const addresses = links.dialable(peer).filter(address => !isRelayed(address));
    if (addresses.length === 0) return;
    dialling.keep(peer, addresses);
    void keeper.contact(peer, addresses.map(String));
  }

  /** Members are worth more than one attempt: the other side may get its relay a moment later. */
  function heardOf(peer: NodeId, addresses: readonly string[]): void {
    const readable = addresses.flatMap(readMultiaddr);
    if (membership.mesh === undefined) dialling.told(peer, readable);
    else if (!links.isConnected(peer)) dialling.pursue(peer, readable);
  }

  return new Exchange(
    {
      mesh: () => membership.meshName,
      nodeName: config.nodeName,
      member: () => (membership.mesh === undefined ? undefined : {mesh: membership.mesh, chain: membership.chain}),
      relay: config.relay ?? false,
      revocations: () => membership.revocations,
      mayGreet: connection => doorkeeper.judgeArrival(parts.arrivalOf(connection)),
      admits: (peer, greeting, connection) => doorkeeper.judge(peer, greeting, parts.arrivalOf(connection)),
      learned,
      newest: () => handlers.newest(),
      judge: (aged, from) => void handlers.judge(aged, from),
      known: () => links.known(),
      heardOf,
    },
    parts,
    environment,
  );
}

function readMultiaddr(text: string): Multiaddr[] {
  try {
    return [multiaddr(text)];
  } catch {
    return []; // a hint that cannot be read is no hint
  }
}
