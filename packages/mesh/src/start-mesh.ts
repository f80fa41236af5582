import type {Connection, Stream, StreamHandler} from '@libp2p/interface';
import {multiaddr} from '@multiformats/multiaddr';
import type {Multiaddr} from '@multiformats/multiaddr';
import {describeError, Fault, shortNode} from '@hearsay/core';
import type {ControlAnswer, ControlRequest, Environment, Link, Mesh, MeshHandlers, NodeId} from '@hearsay/core';
import type {SignedRecord, Worker} from '@hearsay/core';
import {answerControl, askControl, controlMsMax, controlProtocol} from './control.ts';
import {Exchange, recordsProtocol} from './exchange.ts';
import {loadIdentity, nodeIdOf, signRecord} from './identity.ts';
import {fetchInventory, giveInventory, inventoryMsMax, inventoryProtocol} from './inventory.ts';
import {LanDiscovery} from './lan-discovery.ts';
import {leaseProtocol} from './lease-http.ts';
import {LeasePool} from './lease-pool.ts';
import {LeaseStreams} from './lease-stream.ts';
import {streamsMax} from './libp2p-node.ts';
import {MeshParts} from './mesh-parts.ts';
import type {MeshConfig} from './mesh-parts.ts';
import {peerWorker} from './peer-worker.ts';
import {timeLimit} from './time-limit.ts';

/** Gossip brings news at once; the exchange repairs what it lost. One peer at a time, at random. */
const exchangeMs = 30_000;

/** A connection on which no admission was even begun is of no use. */
const admissionMsMax = 10_000;

/** A node leaves within two seconds, whatever libp2p still waits for. */
const stopMsMax = 2000;

/** Opens this node's end of the mesh. It listens at once, and meets nobody before `serve`. */
export async function startMesh(config: MeshConfig, environment: Environment): Promise<Mesh> {
  const key = await loadIdentity(config.identityFile);
  const parts = new MeshParts(key, config, environment);
  await parts.open();
  return new Libp2pMesh(parts, config, environment);
}

class Libp2pMesh implements Mesh {
  readonly self: NodeId;
  readonly #parts: MeshParts;
  readonly #config: MeshConfig;
  readonly #environment: Environment;
  readonly #stack = new AsyncDisposableStack();
  readonly #pool: LeasePool;
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
    parts.admitted = peer => this.#pool.warm(peer);
  }

  addresses(): readonly string[] {
    return this.#parts.node.getMultiaddrs().map(String);
  }

  async serve(handlers: MeshHandlers): Promise<void> {
    const {node, gossip, admissions, dialling, links} = this.#parts;
    if (this.#parts.handlers !== undefined) throw new Fault('INTERNAL', 'serve is called once');
    const {clock, log} = this.#environment;
    const exchange = new Exchange(
      {
        mesh: this.#config.mesh,
        nodeName: this.#config.nodeName,
        newest: () => handlers.newest(),
        judge: (aged, from) => void handlers.judge(aged, from),
        known: () => links.known(),
        heardOf: (peer, addresses) => dialling.sighted(peer, addresses.flatMap(readMultiaddr)),
      },
      admissions,
      this.#environment,
    );
    this.#leases = new LeaseStreams((request, from, signal) => handlers.offer(request, from, signal), clock, log);
    await node.handle(recordsProtocol, (stream, connection) => exchange.answer(stream, connection));
    await this.#handle(inventoryProtocol, stream => giveInventory(stream, handlers.inventory(), clock));
    await this.#handle(leaseProtocol, (stream, from) => this.#leases?.serve(stream, from));
    await this.#handle(controlProtocol, (stream, from) => answerControl(stream, from, handlers.control, clock));
    this.#watchConnections(exchange);
    gossip.start(
      node.services.pubsub,
      (record, from) => handlers.judge({record, ageMs: 0}, from),
      peer => this.#exchangeWith(exchange, peer),
    );
    this.#parts.handlers = handlers;
    if (this.#config.discovery !== false) this.#discover();
    dialling.start();
    this.#exchangeRepeatedly(exchange);
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

  #watchConnections(exchange: Exchange): void {
    const {node, links, admissions, gate} = this.#parts;
    const end = new AbortController();
    this.#stack.defer(() => end.abort());
    const {signal} = end;
    const opened = ({detail}: CustomEvent<Connection>): void => this.#opened(detail, exchange);
    node.addEventListener('connection:open', opened, {signal});
    node.addEventListener('connection:close', ({detail}) => this.#closed(detail), {signal});
    node.addEventListener(
      'peer:identify',
      ({detail}) => {
        const peer = nodeIdOf(detail.peerId);
        links.identified(peer, detail.listenAddrs);
        if (admissions.isAdmitted(peer)) this.#parts.announce(peer); // its address is known now
      },
      {signal},
    );
    for (const connection of node.getConnections()) gate.settled(nodeIdOf(connection.remotePeer));
  }

  #opened(connection: Connection, exchange: Exchange): void {
    const {links, admissions, gate} = this.#parts;
    const peer = nodeIdOf(connection.remotePeer);
    const first = !links.isConnected(peer);
    links.opened(connection);
    gate.settled(peer);
    if (first) admissions.begin(peer);
    if (connection.direction === 'outbound' && !admissions.isAdmitted(peer)) void exchange.begin(connection);
    const check = this.#environment.clock.after(admissionMsMax, () => {
      if (admissions.state(peer).kind === 'unknown') connection.abort(new Error('no admission was asked for'));
    });
    connection.addEventListener('close', () => check[Symbol.dispose]());
  }

  #closed(connection: Connection): void {
    const {links, admissions, gate, gossip, dialling} = this.#parts;
    const peer = nodeIdOf(connection.remotePeer);
    const addresses = links.dialable(peer);
    gate.settled(peer);
    const left = links.closed(connection);
    if (left !== undefined) return gossip.moved(left.remotePeer, left);
    if (this.#closing === undefined && admissions.isAdmitted(peer)) dialling.lost(peer, addresses);
    admissions.forget(peer);
    this.#pool.forget(peer);
  }

  #discover(): void {
    const {dialling} = this.#parts;
    const discovery = new LanDiscovery(
      {
        mesh: this.#config.mesh,
        self: this.self,
        listening: () => this.#parts.listening(),
        sighted: (node, addresses) => dialling.sighted(node, addresses),
      },
      this.#environment,
    );
    this.#stack.use(discovery);
  }

  #exchangeWith(exchange: Exchange, peer: NodeId): void {
    const connection = this.#parts.links.connection(peer);
    if (connection !== undefined && this.#parts.admissions.isAdmitted(peer)) void exchange.begin(connection);
  }

  #exchangeRepeatedly(exchange: Exchange): void {
    this.#timer = this.#environment.clock.after(exchangeMs, () => {
      const peers = this.#parts.links.admitted();
      const peer = peers[Math.floor(this.#environment.random.next() * peers.length)];
      if (peer !== undefined) this.#exchangeWith(exchange, peer);
      if (this.#closing === undefined) this.#exchangeRepeatedly(exchange);
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

  links(): readonly Link[] {
    return this.#parts.links.all();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const {node, admissions, dialling} = this.#parts;
    this.#parts.handlers = undefined; // from here on nobody is let in and nothing is reported
    this.#timer?.[Symbol.dispose]();
    this.#leases?.close();
    this.#pool[Symbol.dispose]();
    admissions[Symbol.dispose]();
    const ended = new AbortController();
    const parts = Promise.all([this.#stack.disposeAsync(), dialling[Symbol.asyncDispose](), node.stop()]);
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

function readMultiaddr(text: string): Multiaddr[] {
  try {
    return [multiaddr(text)];
  } catch {
    return []; // a hint that cannot be read is no hint
  }
}
