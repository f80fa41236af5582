import type {Connection, Stream, StreamHandler} from '@libp2p/interface';
import {describeError, Fault, shortNode, timeLimit} from '@hearsay/core';
import type {ControlAnswer, ControlRequest, Environment, Link, Mesh, MeshAdmin, MeshHandlers} from '@hearsay/core';
import type {NodeId, SignedRecord, Worker} from '@hearsay/core';
import {hostPortOf} from './addresses.ts';
import {answerControl, askControl, controlMsMax, controlProtocol} from './control.ts';
import {recordsProtocol} from './exchange.ts';
import type {Exchange} from './exchange.ts';
import {nodeIdOf, signRecord} from './identity.ts';
import {fetchInventory, giveInventory, inventoryMsMax, inventoryProtocol} from './inventory.ts';
import {LanDiscovery} from './lan-discovery.ts';
import {leaseProtocol} from './lease-http.ts';
import {LeasePool} from './lease-pool.ts';
import {LeaseStreams} from './lease-stream.ts';
import {streamsMax} from './libp2p-node.ts';
import {MembersTalk, membersProtocol} from './members-talk.ts';
import {meshAdmin} from './mesh-admin.ts';
import {makeExchange} from './make-exchange.ts';
import {MeshParts} from './mesh-parts.ts';
import type {MeshConfig} from './mesh-parts.ts';
import {MembershipKeeper} from './membership-keeper.ts';
import {Paths} from './paths.ts';
import {peerWorker} from './peer-worker.ts';
import {RoundTrips} from './round-trips.ts';
import {watchConnections} from './watch-connections.ts';

/** Gossip brings news at once; the exchange repairs what it lost. One peer at a time, at random. */
const exchangeMs = 30_000;

/** Between the last record and the end of the connections: a busy peer takes this long to judge it. */
const lastWordsMs = 150;

/** A node leaves within two seconds, whatever libp2p still waits for. */
const stopMsMax = 2000;

/** Opens this node's end of the mesh. It listens at once, and meets nobody before `serve`. */
export async function startMesh(config: MeshConfig, environment: Environment): Promise<AdministeredMesh> {
  const parts = await MeshParts.make(config, environment);
  await parts.open();
  return new Libp2pMesh(parts, config, environment);
}

/** A mesh whose members people can change. */
export interface AdministeredMesh extends Mesh {
  readonly admin: MeshAdmin;
  /** What only the members of this closed mesh know; undefined in an open one. */
  secret(): Uint8Array | undefined;
}

class Libp2pMesh implements AdministeredMesh {
  readonly self: NodeId;
  readonly #parts: MeshParts;
  readonly #config: MeshConfig;
  readonly #environment: Environment;
  readonly #stack = new AsyncDisposableStack();
  readonly #pool: LeasePool;
  readonly admin: MeshAdmin;
  readonly #talk: MembersTalk;
  readonly #keeper: MembershipKeeper;
  readonly #paths: Paths;
  readonly #roundTrips: RoundTrips;
  #discovery: LanDiscovery | undefined;
  #exchange: Exchange | undefined;
  #leases: LeaseStreams | undefined;
  #timer: Disposable | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: MeshParts, config: MeshConfig, environment: Environment) {
    this.self = parts.self;
    this.#parts = parts;
    this.#config = config;
    this.#environment = environment;
    this.#pool = new LeasePool({
      connection: peer => this.#connection(peer),
      open: (connection, signal) => openStream(connection, leaseProtocol, signal),
      ...environment,
    });
    this.#roundTrips = new RoundTrips({
      links: {admitted: () => parts.links.admitted(), connection: peer => parts.links.connection(peer)},
      changed: peer => parts.announce(peer),
      ...environment,
    });
    parts.admitted = peer => {
      this.#pool.warm(peer);
      this.#roundTrips.begin(peer);
    };
    const relay = config.relay ?? false;
    this.#talk = new MembersTalk(
      parts,
      {changed: async why => this.#keeper.rejudge(why === 'revoked' ? 'at once' : 'gently')},
      environment,
    );
    this.#keeper = new MembershipKeeper(
      parts,
      this.#talk,
      {exchange: peer => this.#exchangeWith(peer), moved: () => this.#discover()},
      environment,
    );
    this.#paths = new Paths(parts, relay, environment);
    this.admin = meshAdmin({
      parts,
      talk: this.#talk,
      relay,
      nodeName: config.nodeName,
      reservations: () => this.#paths.reservations(),
      rejudge: how => this.#keeper.rejudge(how),
      greet: peer => this.#exchangeWith(peer),
      environment,
    });
  }

  addresses(): readonly string[] {
    return this.#parts.node.getMultiaddrs().map(String);
  }

  async serve(handlers: MeshHandlers): Promise<void> {
    const {node, gossip, dialling} = this.#parts;
    if (this.#parts.handlers !== undefined) throw new Fault('INTERNAL', 'serve is called once');
    const {clock, log} = this.#environment;
    this.#exchange = makeExchange(
      {parts: this.#parts, keeper: this.#keeper, handlers, config: this.#config},
      this.#environment,
    );
    const exchange = this.#exchange;
    this.#leases = new LeaseStreams((request, from, signal) => handlers.offer(request, from, signal), clock, log);
    await node.handle(recordsProtocol, (stream, connection) => exchange.answer(stream, connection));
    await node.handle(membersProtocol, (stream, connection) => this.#talk.answer(stream, connection));
    await this.#handle(inventoryProtocol, stream => giveInventory(stream, handlers.inventory(), clock));
    await this.#handle(leaseProtocol, (stream, from) => this.#leases?.serve(stream, from));
    await this.#handle(controlProtocol, (stream, from) => answerControl(stream, from, handlers.control, clock));
    const gone = (peer: NodeId): void => this.#pool.forget(peer);
    const isClosing = (): boolean => this.#closing !== undefined;
    this.#stack.use(watchConnections({parts: this.#parts, exchange, gone, isClosing, clock}));
    gossip.start(
      node.services.pubsub,
      (record, from) => handlers.judge({record, ageMs: 0}, from),
      peer => {
        const connection = this.#parts.links.connection(peer);
        if (connection !== undefined) void exchange.catchUp(connection);
      },
    );
    this.#parts.handlers = handlers;
    this.#discover();
    dialling.start();
    this.#keeper.start();
    this.#exchangeRepeatedly();
  }

  /** Every protocol of ours asks first who is there (law 8). */
  async #handle(protocol: string, serve: (stream: Stream, from: NodeId) => Promise<void> | undefined): Promise<void> {
    const {admissions, node} = this.#parts;
    const handler: StreamHandler = async (stream, connection) => {
      const from = nodeIdOf(connection.remotePeer);
      if (!admissions.isAdmitted(from)) return stream.abort(new Error('not admitted'));
      try {
        await serve(stream, from);
      } catch (error) {
        this.#environment.log('debug', 'a conversation broke', {protocol, from, reason: describeError(error)});
      }
    };
    await node.handle(protocol, handler, {maxInboundStreams: streamsMax, maxOutboundStreams: streamsMax});
  }

  /** Again when the node belongs to a mesh of another name. */
  #discover(): void {
    if (this.#config.discovery === false || this.#closing !== undefined) return;
    const {dialling, clones, membership} = this.#parts;
    this.#discovery?.[Symbol.dispose]();
    this.#discovery = new LanDiscovery(
      {
        mesh: membership.meshName,
        self: this.self,
        peers: () => this.#parts.links.admitted().length,
        listening: () => this.#parts.listening(),
        sighted: (node, addresses) => dialling.sighted(node, addresses),
        sightedSelf: addresses => {
          for (const {host, port} of addresses.flatMap(address => hostPortOf(address) ?? []))
            clones.sighted(host, port);
        },
      },
      this.#environment,
    );
  }

  #exchangeWith(peer: NodeId): void {
    const connection = this.#parts.links.connection(peer);
    if (connection !== undefined) void this.#exchange?.begin(connection);
  }

  #exchangeRepeatedly(): void {
    this.#timer = this.#environment.clock.after(exchangeMs, () => {
      const peers = this.#parts.links.admitted();
      const peer = peers[Math.floor(this.#environment.random.next() * peers.length)];
      if (peer !== undefined) this.#exchangeWith(peer);
      if (this.#closing === undefined) this.#exchangeRepeatedly();
    });
  }

  async sign(payload: Uint8Array): Promise<SignedRecord> {
    return signRecord(this.#parts.key, this.self, payload);
  }

  async publish(record: SignedRecord): Promise<void> {
    await this.#parts.gossip.publish(record);
  }

  async inventory(peer: NodeId, signal: AbortSignal): Promise<Uint8Array> {
    const {clock} = this.#environment;
    using limit = timeLimit(clock, inventoryMsMax, 'reading an inventory', signal);
    try {
      return await fetchInventory(await this.#open(peer, inventoryProtocol, limit.signal), clock, limit.signal);
    } catch (cause) {
      if (cause instanceof Fault && cause.code === 'PEER_FAILED') throw cause;
      throw new Fault('PEER_FAILED', `node ${shortNode(peer)} gave no inventory`, {cause, details: {node: peer}});
    }
  }

  async control(peer: NodeId, request: ControlRequest, signal: AbortSignal): Promise<ControlAnswer> {
    const {clock} = this.#environment;
    using limit = timeLimit(clock, controlMsMax, 'a wish to another node', signal);
    try {
      return await askControl(await this.#open(peer, controlProtocol, limit.signal), request, clock, limit.signal);
    } catch (cause) {
      if (cause instanceof Fault && cause.code === 'PEER_FAILED') throw cause;
      const reason = describeError(cause);
      throw new Fault('PEER_FAILED', `node ${shortNode(peer)} gave no answer: ${reason}`, {
        cause,
        details: {node: peer},
      });
    }
  }

  worker(peer: NodeId): Worker {
    const open = async (signal: AbortSignal): Promise<Stream> => {
      const stream = await this.#pool.take(peer, signal);
      if (stream === undefined) throw notConnected(peer);
      return stream;
    };
    return peerWorker(peer, open, this.#environment.clock);
  }

  #connection(peer: NodeId): Connection | undefined {
    return this.#parts.admissions.isAdmitted(peer) ? this.#parts.links.connection(peer) : undefined;
  }

  async #open(peer: NodeId, protocol: string, signal: AbortSignal): Promise<Stream> {
    const connection = this.#connection(peer);
    if (connection === undefined) throw notConnected(peer);
    return openStream(connection, protocol, signal);
  }

  secret(): Uint8Array | undefined {
    return this.#parts.membership.secret;
  }

  links(): readonly Link[] {
    return this.#parts.links.all();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const {node, admissions, dialling} = this.#parts;
    // Peers forget who is not connected, and with that whatever of it they have not judged yet: its leave record.
    if (this.#parts.links.admitted().length > 0) await this.#environment.clock.sleep(lastWordsMs);
    this.#parts.handlers = undefined; // from here on nobody is let in and nothing is reported
    this.#timer?.[Symbol.dispose]();
    this.#leases?.close();
    this.#pool[Symbol.dispose]();
    this.#roundTrips[Symbol.dispose]();
    admissions[Symbol.dispose]();
    const ended = new AbortController();
    this.#discovery?.[Symbol.dispose]();
    const own = [this.#stack, dialling, this.#keeper, this.#paths].map(async part => part[Symbol.asyncDispose]());
    const parts = Promise.all([...own, node.stop()]);
    const guard = this.#environment.clock.sleep(stopMsMax, ended.signal);
    await Promise.race([parts, guard]).finally(() => ended.abort());
    guard.catch(() => undefined);
    for (const connection of node.getConnections()) connection.abort(new Error('this node is stopping'));
  }
}

async function openStream(connection: Connection, protocol: string, signal?: AbortSignal): Promise<Stream> {
  return connection.newStream(protocol, {maxOutboundStreams: streamsMax, ...(signal && {signal})});
}

function notConnected(peer: NodeId): Fault {
  return new Fault('PEER_FAILED', `node ${shortNode(peer)} is not connected`, {details: {node: peer}});
}
