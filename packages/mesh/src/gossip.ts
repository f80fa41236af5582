import {hash} from 'node:crypto';
import {gossipsub, TopicValidatorResult} from '@libp2p/gossipsub';
import type {GossipSub, GossipSubComponents, Message} from '@libp2p/gossipsub';
import type {PeerScoreParams} from '@libp2p/gossipsub/score';
import type {Connection, PeerId, Stream, StreamHandler, Topology} from '@libp2p/interface';
import {decodeSignedRecord, encodeSignedRecord, isFromNewer, recordBytesMax} from '@hearsay/core';
import type {Environment, NodeId, SignedRecord, Verdict} from '@hearsay/core';
import type {Admissions} from './admission.ts';
import {nodeIdOf} from './identity.ts';
import type {VerifiedRecords} from './verified-records.ts';

/** One for all meshes: who is not admitted is not met here at all. */
const topic = '/hearsay/records/1';

type Registrar = GossipSubComponents['registrar'];

/** Room for one record and for what libp2p puts around it (subscriptions and mesh upkeep of many peers). */
const rpcBytesMax = 64 * 1024;

/** Bytes that wait for one slow peer; it gets the rest by exchange. */
const outboundBytesMax = 4 * 1024 * 1024;

/**
 * After three messages in a row that cannot be used, a peer is not listened to: for two seconds, and for longer the
 * more there were, since a twentieth of them is forgotten each second (after twenty, forty seconds). A peer that is
 * quiet or late is a good one; only gossipsub's own penalties are left, for promises that were not kept, and they are
 * gone in two seconds. The first line is there because by default more than ten nodes behind one address get such a
 * score that they hear nothing, without an error.
 */
const scoreParams: Partial<PeerScoreParams> = {
  IPColocationFactorWeight: 0,
  retainScore: 10 * 60_000,
  topics: {
    [topic]: {
      topicWeight: 1,
      timeInMeshWeight: 0,
      timeInMeshQuantum: 1,
      timeInMeshCap: 1,
      firstMessageDeliveriesWeight: 0,
      firstMessageDeliveriesDecay: 0.5,
      firstMessageDeliveriesCap: 1,
      meshMessageDeliveriesWeight: 0,
      meshMessageDeliveriesDecay: 0.5,
      meshMessageDeliveriesCap: 1,
      meshMessageDeliveriesThreshold: 1,
      meshMessageDeliveriesWindow: 0,
      meshMessageDeliveriesActivation: 1000,
      meshFailurePenaltyWeight: 0,
      meshFailurePenaltyDecay: 0.5,
      invalidMessageDeliveriesWeight: -10,
      invalidMessageDeliveriesDecay: 0.95,
    },
  },
};

/**
 * Who makes a message sends it to all that it is connected with. Whoever is not cannot ask it for anything either, so
 * that nobody passes it on at once: those hear within a second or two, when peers tell what they have (IHAVE) and are
 * asked for it. By default each node of a LAN would hear everything seven times. A peer that wants all at once (GRAFT),
 * as others do by default, gets it.
 */
const fewCopies = {D: 0, Dlo: 0, Dhi: 8, Dscore: 0, Dout: 0, Dlazy: 3, gossipFactor: 0.1};

/** Peers of which it was told that they spread what cannot be used; the log is not theirs to fill. */
const toldMax = 256;

/**
 * Messages of one peer in ten seconds that are right and of no use: of a newer version, or old. gossipsub remembers
 * each for two minutes, in a kilobyte: whoever sends without end would fill the memory. Others send a few a second.
 */
const uselessMax = 1000;
const uselessWindowMs = 10_000;

/** Checked by the caller against everything it knows; called only with records that are really signed. */
export type Judge = (record: SignedRecord, from: NodeId) => Verdict;

/**
 * Spreads records to all admitted peers at once. gossipsub has no history: what a newcomer missed, the exchange
 * brings.
 */
export class Gossip {
  readonly #admissions: Admissions;
  readonly #verified: VerifiedRecords;
  readonly #environment: Pick<Environment, 'clock' | 'log'>;
  /** Since the present window began, by who gave them. */
  readonly #useless = new Map<NodeId, number>();
  #windowBeganMs = 0;
  readonly #told = new Set<NodeId>();
  readonly #topologies = new Set<Topology>();
  #pubsub: GossipSub | undefined;

  constructor(admissions: Admissions, verified: VerifiedRecords, environment: Pick<Environment, 'clock' | 'log'>) {
    this.#admissions = admissions;
    this.#verified = verified;
    this.#environment = environment;
  }

  /** For createLibp2p: gossipsub that meets admitted peers only. */
  service(): (components: GossipSubComponents) => GossipSub {
    const create = gossipsub({
      // A record is signed by the node that it is of; gossipsub would sign and verify it a second time.
      globalSignaturePolicy: 'StrictNoSign',
      // Of the whole message: a forged one with the signature of a good one must not be taken for a copy of that.
      msgIdFn: ({data}) => hash('sha256', data, 'buffer'),
      allowPublishToZeroTopicPeers: true,
      ignoreDuplicatePublishError: true, // as `Mesh.publish` says
      emitSelf: false,
      floodPublish: true,
      doPX: false,
      ...fewCopies,
      allowedTopics: [topic],
      maxInboundDataLength: rpcBytesMax,
      maxOutboundBufferSize: outboundBytesMax,
      scoreParams,
    });
    return components =>
      create({
        privateKey: components.privateKey,
        peerId: components.peerId,
        peerStore: components.peerStore,
        connectionManager: components.connectionManager,
        logger: components.logger,
        registrar: this.#admittedOnly(components.registrar),
      });
  }

  /** Joins the topic. `subscribed` is called when a peer has joined too: from then on gossip reaches it. */
  start(pubsub: GossipSub, judge: Judge, subscribed: (node: NodeId) => void): void {
    this.#pubsub = pubsub;
    pubsub.topicValidators.set(topic, (from, message) => this.#validate(from, message, judge));
    pubsub.addEventListener('subscription-change', ({detail}) => {
      const joined = detail.subscriptions.some(change => change.subscribe && change.topic === topic);
      if (joined) subscribed(nodeIdOf(detail.peerId));
    });
    pubsub.subscribe(topic);
  }

  async publish(record: SignedRecord): Promise<void> {
    await this.#pubsub?.publish(topic, encodeSignedRecord(record));
  }

  /**
   * gossipsub keeps writing to the connection that it knew when that ends and another is left. Only our own stream is
   * replaced: telling it of a disconnect would also close the stream that the peer has just opened for the same reason,
   * and the peer would never open a third.
   */
  moved(peer: PeerId, connection: Connection): void {
    const id = peer.toString();
    const streams = this.#pubsub === undefined ? undefined : outboundStreams(this.#pubsub);
    const stale = streams?.get(id);
    streams?.delete(id);
    void stale?.close().catch(() => undefined); // its connection is gone already
    for (const topology of this.#topologies) void topology.onConnect?.(peer, connection);
  }

  #validate(from: PeerId, message: Message, judge: Judge): TopicValidatorResult {
    const giver = nodeIdOf(from);
    if (!this.#admissions.isAdmitted(giver)) return TopicValidatorResult.Ignore;
    const verdict = this.#judgeMessage(message, giver, judge);
    switch (verdict === 'ignore' && this.#isTooMuch(giver) ? 'reject' : verdict) {
      case 'accept':
        return TopicValidatorResult.Accept;
      case 'ignore':
        return TopicValidatorResult.Ignore;
      case 'reject':
        this.#tell(giver);
        return TopicValidatorResult.Reject;
    }
  }

  #judgeMessage(message: Message, giver: NodeId, judge: Judge): Verdict {
    if (message.data.length > recordBytesMax) return 'reject';
    let record: SignedRecord;
    try {
      record = decodeSignedRecord(message.data);
    } catch {
      return isFromNewer(message.data) ? 'ignore' : 'reject';
    }
    return this.#verified.isSigned(record) ? judge(record, giver) : 'reject';
  }

  /** Counts one more that is of no use. */
  #isTooMuch(giver: NodeId): boolean {
    const nowMs = this.#environment.clock.monotonicMs();
    if (nowMs - this.#windowBeganMs > uselessWindowMs) {
      this.#useless.clear();
      this.#windowBeganMs = nowMs;
    }
    const count = (this.#useless.get(giver) ?? 0) + 1;
    this.#useless.set(giver, count);
    return count > uselessMax;
  }

  #tell(node: NodeId): void {
    if (this.#told.has(node) || this.#told.size >= toldMax) return;
    this.#told.add(node);
    const {log} = this.#environment;
    log('warn', 'a node spreads records that cannot be used; while it does, its gossip is not listened to', {node});
  }

  /**
   * gossipsub would talk to every libp2p node that connects; behind this it hears of a peer once that is admitted
   * (law 8).
   */
  #admittedOnly(registrar: Registrar): Registrar {
    const wrapped = new Map<string, Topology>();
    return {
      getProtocols: () => registrar.getProtocols(),
      handle: (protocol, handler, options) => registrar.handle(protocol, this.#guardHandler(handler), options),
      unhandle: (protocol, options) => registrar.unhandle(protocol, options),
      getHandler: protocol => registrar.getHandler(protocol),
      use: (protocol, middleware) => registrar.use(protocol, middleware),
      unuse: protocol => registrar.unuse(protocol),
      getMiddleware: protocol => registrar.getMiddleware(protocol),
      register: async (protocol, topology, options) => {
        const guarded = this.#guardTopology(topology);
        this.#topologies.add(guarded);
        const id = await registrar.register(protocol, guarded, options);
        wrapped.set(id, guarded);
        return id;
      },
      unregister: id => {
        const guarded = wrapped.get(id);
        if (guarded !== undefined) this.#topologies.delete(guarded);
        wrapped.delete(id);
        registrar.unregister(id);
      },
      getTopologies: protocol => registrar.getTopologies(protocol),
    };
  }

  #guardHandler(handler: StreamHandler): StreamHandler {
    return async (stream: Stream, connection: Connection) => {
      // The peer may have admitted us a moment before we admit it.
      if (await this.#admissions.decided(nodeIdOf(connection.remotePeer))) await handler(stream, connection);
      else stream.abort(new Error('not admitted'));
    };
  }

  #guardTopology(topology: Topology): Topology {
    return {
      notifyOnLimitedConnection: topology.notifyOnLimitedConnection ?? false,
      onConnect: async (peer, connection) => {
        if (await this.#admissions.decided(nodeIdOf(peer))) await topology.onConnect?.(peer, connection);
      },
      onDisconnect: async peer => {
        await topology.onDisconnect?.(peer);
      },
    };
  }
}

/** A public field of gossipsub's class that its interface does not name. */
function outboundStreams(pubsub: GossipSub): Map<string, {close(): Promise<void>}> | undefined {
  const streams: unknown = Reflect.get(pubsub, 'streamsOutbound');
  return streams instanceof Map ? streams : undefined;
}
