import type {Connection} from '@libp2p/interface';
import type {Clock, NodeId} from '@hearsay/core';
import type {Exchange} from './exchange.ts';
import {nodeIdOf} from './identity.ts';
import type {MeshParts} from './mesh-parts.ts';

/** A connection on which no admission was even begun is of no use. */
const admissionMsMax = 10_000;

interface WatchDeps {
  readonly parts: MeshParts;
  readonly exchange: Exchange;
  /** The last connection to a peer has ended. */
  readonly gone: (peer: NodeId) => void;
  readonly isClosing: () => boolean;
  readonly clock: Clock;
}

/** Keeps links and admissions in step with what libp2p opens and closes, until it is disposed. */
export function watchConnections({parts, exchange, gone, isClosing, clock}: WatchDeps): Disposable {
  const {node, links, admissions, gate, gossip, dialling} = parts;

  function opened(connection: Connection): void {
    const peer = nodeIdOf(connection.remotePeer);
    const first = !links.isConnected(peer);
    links.opened(connection);
    gate.settled(peer);
    if (first) admissions.begin(peer);
    if (!first && admissions.isAdmitted(peer)) parts.announce(peer); // the path may be another one now
    const isOurs = connection.direction === 'outbound' && !parts.joining.has(peer);
    if (isOurs && !admissions.isAdmitted(peer)) void exchange.begin(connection);
    const check = clock.after(admissionMsMax, () => {
      if (admissions.state(peer).kind === 'unknown') connection.abort(new Error('no admission was asked for'));
    });
    connection.addEventListener('close', () => check[Symbol.dispose]());
  }

  function closed(connection: Connection): void {
    const peer = nodeIdOf(connection.remotePeer);
    const addresses = links.dialable(peer);
    gate.settled(peer);
    const left = links.closed(connection);
    if (left !== undefined) return gossip.moved(left.remotePeer, left);
    if (!isClosing() && admissions.isAdmitted(peer)) dialling.pursue(peer, addresses);
    admissions.forget(peer);
    gone(peer);
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
