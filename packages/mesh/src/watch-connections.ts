import type {Connection, PeerId} from '@libp2p/interface';
import type {Clock, NodeId} from '@hearsay/core';
import type {Exchange} from './exchange.ts';
import {nodeIdOf} from './identity.ts';
import type {MeshParts} from './mesh-parts.ts';

/** A connection of a node that is not admitted by then is of no use, whatever its other connections came to. */
const admissionMsMax = 10_000;

/**
 * A direct connection and a relayed one, and another of each while they change; more would only crowd others out.
 */
const connectionsPerNodeMax = 4;

interface WatchDeps {
  readonly parts: MeshParts;
  readonly exchange: Pick<Exchange, 'begin'>;
  /** The last connection to a peer has ended. */
  readonly gone: (peer: NodeId) => void;
  readonly isClosing: () => boolean;
  readonly clock: Clock;
}

/** Keeps links and admissions in step with what libp2p opens and closes, until it is disposed. */
export function watchConnections({parts, exchange, gone, isClosing, clock}: WatchDeps): Disposable {
  const {node, links, admissions, gate, gossip, dialling} = parts;

  const surplus = new WeakSet<Connection>();

  function opened(connection: Connection): void {
    const peer = nodeIdOf(connection.remotePeer);
    if (links.connections(peer).length >= connectionsPerNodeMax) {
      surplus.add(connection);
      return connection.abort(new Error('there are enough connections'));
    }
    const first = !links.isConnected(peer);
    links.opened(connection);
    gate.settled(peer);
    if (first) admissions.begin(peer);
    if (!first && admissions.isAdmitted(peer)) parts.announce(peer); // the path may be another one now
    const isOurs = connection.direction === 'outbound' && !parts.joining.has(peer);
    if (isOurs && !admissions.isAdmitted(peer)) void exchange.begin(connection);
    const check = clock.after(admissionMsMax, () => {
      if (!admissions.isAdmitted(peer)) connection.abort(new Error('it was not admitted'));
    });
    connection.addEventListener('close', () => check[Symbol.dispose]());
  }

  function closed(connection: Connection): void {
    if (surplus.has(connection)) return;
    const peer = nodeIdOf(connection.remotePeer);
    const addresses = links.dialable(peer);
    gate.settled(peer);
    const left = links.closed(connection);
    if (left !== undefined) return gossip.moved(left.remotePeer, left);
    if (!admissions.isAdmitted(peer)) void forgetStranger(connection.remotePeer);
    else if (!isClosing()) dialling.pursue(peer, addresses);
    admissions.forget(peer);
    gone(peer);
  }

  /** libp2p would remember every key that ever came, and anybody can make keys at will. */
  async function forgetStranger(peer: PeerId): Promise<void> {
    await node.peerStore.delete(peer).catch(() => undefined); // it was not known to begin with
  }

  const end = new AbortController();
  const {signal} = end;
  node.addEventListener('connection:open', ({detail}) => opened(detail), {signal});
  node.addEventListener('connection:close', ({detail}) => closed(detail), {signal});
  node.addEventListener(
    'peer:identify',
    ({detail}) => {
      const peer = nodeIdOf(detail.peerId);
      links.identified(peer, detail.listenAddrs);
      if (admissions.isAdmitted(peer)) parts.announce(peer); // its address is known now
    },
    {signal},
  );
  for (const connection of node.getConnections()) gate.settled(nodeIdOf(connection.remotePeer));
  return {[Symbol.dispose]: () => end.abort()};
}
