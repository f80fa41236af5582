import type {GossipSub, GossipSubComponents} from '@libp2p/gossipsub';
import {circuitRelayServer, circuitRelayTransport} from '@libp2p/circuit-relay-v2';
import {identify, identifyPush} from '@libp2p/identify';
import type {Identify, IdentifyPush} from '@libp2p/identify';
import {FaultTolerance} from '@libp2p/interface';
import type {ConnectionGater, Libp2p, PrivateKey} from '@libp2p/interface';
import {ping} from '@libp2p/ping';
import type {Ping} from '@libp2p/ping';
import type {Multiaddr} from '@multiformats/multiaddr';
import {createLibp2p} from 'libp2p';
import {Fault} from '@hearsay/core';
import type {Clock} from '@hearsay/core';
import {hostPortOf, withoutLoopback} from './addresses.ts';
import {encrypter} from './encrypter.ts';
import {findPort} from './listen.ts';
import {mergeOnce} from './merge-once.ts';
import {multiplexer} from './multiplexer.ts';
import {silentLogger} from './silent-logger.ts';
import {zonedTcp} from './zoned-tcp.ts';

/** Streams of one protocol on one connection: a busy node sends this many requests at once to its best neighbour. */
export const streamsMax = 1024;

/** A bulk transfer beside a token stream on one connection delays a token by some milliseconds with this window. */
const windowBytesMax = 1024 * 1024;
const readBufferBytesMax = 4 * 1024 * 1024;
/** A writer that ignores back-pressure is cut here; none of ours does. */
const writeBufferBytesMax = 8 * 1024 * 1024;

/** A subnet that drops packets must not use up the time for the addresses after it. */
const addressMsMax = 2500;

/** Handshakes that take longer are those of strangers who hold connections. */
const handshakeMsMax = 5000;

/** Members that may be reached through one relay, and connections of one member that it carries at a time. */
const reservationsMax = 256;
const relayedStreamsMax = 1024;

/** When an office of nodes restarts behind one address, all of them dial within a second. */
const dialsPerSecondMax = 100;

/** Two nodes on a daemon's port can start in the same instant and find the same port free. */
const listenAttemptsMax = 5;

export interface Libp2pNodeConfig {
  readonly privateKey: PrivateKey;
  readonly port: number;
  readonly listen: readonly string[] | undefined;
  readonly gate: ConnectionGater;
  readonly gossip: (components: GossipSubComponents) => GossipSub;
  /** Pass connections on between members that cannot reach each other. */
  readonly relay: boolean;
  /** Addresses to tell others beside those that this machine knows of itself, for the port that was found. */
  readonly announce: (port: number) => readonly string[];
  readonly clock: Clock;
}

interface Listeners {
  /** Where this node really listens, wildcards resolved, loopback included. */
  readonly addresses: () => Multiaddr[];
  /** Asks a relay that is connected to pass connections on to this node. */
  readonly reserve: (relay: Multiaddr) => Promise<void>;
}

type Services = {
  readonly identify: Identify;
  readonly identifyPush: IdentifyPush;
  readonly ping: Ping;
  readonly pubsub: GossipSub;
  readonly listeners: Listeners;
};

export type Libp2pNode = Libp2p<Services>;

/** Starts libp2p as measured: see docs/protocol.md for what is on the wire. */
export async function startLibp2p(config: Libp2pNodeConfig): Promise<Libp2pNode> {
  if (config.listen !== undefined) return start(config, config.listen, []);
  for (let attempt = 0; attempt < listenAttemptsMax; attempt++) {
    const {port, addresses} = await findPort(config.port);
    const node = await start(config, addresses, config.announce(port));
    if (node.services.listeners.addresses().some(address => hostPortOf(address)?.port === port)) return node;
    await node.stop();
  }
  throw new Fault('BAD_CONFIG', `cannot listen for other nodes from port ${config.port} on; set another mesh.port`);
}

async function start(
  config: Libp2pNodeConfig,
  listen: readonly string[],
  announce: readonly string[],
): Promise<Libp2pNode> {
  const node = await createLibp2p<Services>({
    privateKey: config.privateKey,
    logger: silentLogger,
    nodeInfo: {name: 'hearsay', userAgent: 'hearsay'},
    addresses: {listen: [...listen], appendAnnounce: [...announce], announceFilter: withoutLoopback},
    transports: [zonedTcp(), circuitRelayTransport()],
    connectionEncrypters: [encrypter()],
    streamMuxers: [
      multiplexer(
        {
          maxInboundStreams: 2 * streamsMax,
          maxOutboundStreams: 2 * streamsMax,
          streamOptions: {
            maxStreamWindowSize: windowBytesMax,
            maxReadBufferLength: readBufferBytesMax,
            maxWriteBufferLength: writeBufferBytesMax,
          },
        },
        config.clock,
      ),
    ],
    connectionManager: {
      maxConnections: 512,
      inboundConnectionThreshold: dialsPerSecondMax,
      maxIncomingPendingConnections: dialsPerSecondMax,
      dialTimeout: 10_000,
      addressDialTimeout: addressMsMax,
      inboundUpgradeTimeout: handshakeMsMax,
    },
    // Who falls silent is noticed by link-watch.ts, and how far away the others are by round-trips.ts.
    connectionMonitor: {enabled: false},
    // An address family or interface that is missing must not keep the node from starting.
    transportManager: {faultTolerance: FaultTolerance.NO_FATAL},
    connectionGater: config.gate,
    services: {
      identify: identify(),
      identifyPush: identifyPush(),
      ping: ping(),
      pubsub: config.gossip,
      listeners: components => ({
        addresses: () => components.transportManager.getAddrs(),
        reserve: relay => reserve(components.transportManager, relay),
      }),
      ...(config.relay && {relay: relayServer()}),
    },
  });
  mergeOnce(node.peerStore, config.clock);
  return node;
}

/** Without limits on what passes: all who use it are members, and a limit would cut answers short without an error. */
function relayServer(): ReturnType<typeof circuitRelayServer> {
  return circuitRelayServer({
    reservations: {maxReservations: reservationsMax, applyDefaultLimit: false},
    maxInboundHopStreams: relayedStreamsMax,
    maxOutboundStopStreams: relayedStreamsMax,
  });
}

/** What libp2p's transport manager can do; its own type is not public. */
interface Transports {
  getListeners(): readonly {getAddrs(): Multiaddr[]; listen(address: Multiaddr): Promise<void>}[];
  listen(addresses: Multiaddr[]): Promise<void>;
}

/** libp2p makes a new listener for each reservation and never ends it, so one that lost its relay is used again. */
async function reserve(manager: Transports, relay: Multiaddr): Promise<void> {
  const address = relay.encapsulate('/p2p-circuit');
  const idle = manager
    .getListeners()
    .find(listener => 'reservationStore' in listener && listener.getAddrs().length === 0);
  if (idle === undefined) await manager.listen([address]);
  else await idle.listen(address);
}
