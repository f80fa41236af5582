import {peerIdFromString} from '@libp2p/peer-id';
import {multiaddr} from '@multiformats/multiaddr';
import type {Multiaddr} from '@multiformats/multiaddr';
import type {NodeId} from '@hearsay/core';
import {nodeIdOf} from './identity.ts';

interface Sighting {
  readonly node: NodeId;
  readonly address: Multiaddr;
}

/** Text from the network: anything that is no address of a node is skipped. */
export function readSighting(text: string): Sighting | undefined {
  try {
    const address = multiaddr(text);
    const id = address.getComponents().findLast(({name}) => name === 'p2p')?.value;
    if (id === undefined) return undefined;
    return {node: nodeIdOf(peerIdFromString(id)), address: address.decapsulate(`/p2p/${id}`)};
  } catch {
    return undefined;
  }
}
