import {createHash, createPrivateKey, createPublicKey} from 'node:crypto';
import {privateKeyFromRaw} from '@libp2p/crypto/keys';
import type {Ed25519PrivateKey} from '@libp2p/interface';
import {peerIdFromString} from '@libp2p/peer-id';
import {describeError, Fault, shortNode} from '@hearsay/core';
import {decodeControl, decodeControlAnswer, encodeControl, encodeControlAnswer} from '@hearsay/core';
import type {AgedRecord, ControlAnswer, ControlRequest, Environment, Link, Mesh, MeshHandlers} from '@hearsay/core';
import type {NodeId, SignedRecord, Worker} from '@hearsay/core';
import {isSigned, nodeIdOf, signRecord} from './identity.ts';
import {memoryWorker} from './memory-worker.ts';
import type {MemoryPath} from './memory-worker.ts';
import {VerifiedRecords} from './verified-records.ts';

export interface MemoryNetworkOptions {
  /** Makes keys, losses and their order repeatable. */
  readonly seed?: number;
  /** One way, for everything that crosses; default 0. */
  readonly delayMs?: number;
  /** Share of gossip messages that never arrive, 0 to 1; streams do not lose. Default 0. */
  readonly lossRate?: number;
}

export interface MemoryNetwork {
  /** A node that is not there yet; it joins the others by `serve`. Only nodes of one mesh name meet. */
  mesh(nodeName: string, meshName?: string): Mesh;
  /** Cuts all paths between nodes of different groups, named by node name; a node in no group stays with the first. */
  partition(...groups: readonly (readonly string[])[]): void;
  /** Ends every partition: nodes that can meet again do. */
  heal(): void;
}

/** A network of meshes in one process: the twin of the real one for tests and simulations, with the same contract. */
export function memoryNetwork(environment: Environment, options: MemoryNetworkOptions = {}): MemoryNetwork {
  return new Network(environment, options);
}

/** More records of one node than are ever under way at a time. */
const underWayMax = 8;

class Network implements MemoryNetwork {
  readonly environment: Environment;
  readonly delayMs: number;
  /** One for all, who hear the same at different times: signatures are half of what simulations cost otherwise. */
  readonly verified: VerifiedRecords = new VerifiedRecords(isSigned, underWayMax);
  readonly #lossRate: number;
  readonly #seed: number;
  readonly #random: () => number;
  readonly #nodes = new Map<NodeId, MemoryMesh>();
  #groups: readonly (readonly string[])[] = [];

  constructor(environment: Environment, {seed = 1, delayMs = 0, lossRate = 0}: MemoryNetworkOptions) {
    this.environment = environment;
    this.delayMs = delayMs;
    this.#lossRate = lossRate;
    this.#seed = seed;
    this.#random = seededRandom(seed);
  }

  mesh(nodeName: string, meshName = 'home'): Mesh {
    return new MemoryMesh(this, nodeName, meshName, keyFromSeed(`${this.#seed} ${nodeName}`));
  }

  partition(...groups: readonly (readonly string[])[]): void {
    this.#groups = groups;
    this.rewire();
  }

  heal(): void {
    this.partition();
  }

  join(node: MemoryMesh): void {
    this.#nodes.set(node.self, node);
    this.rewire();
  }

  leave(node: MemoryMesh): void {
    this.#nodes.delete(node.self);
    this.rewire();
  }

  isLost(): boolean {
    return this.#random() < this.#lossRate;
  }

  #canMeet(a: MemoryMesh, b: MemoryMesh): boolean {
    const groupOf = (name: string): number =>
      Math.max(
        0,
        this.#groups.findIndex(group => group.includes(name)),
      );
    return a !== b && a.meshName === b.meshName && groupOf(a.nodeName) === groupOf(b.nodeName);
  }

  /** Makes and cuts paths until they are what they should be. */
  rewire(): void {
    const nodes = [...this.#nodes.values()];
    for (const a of nodes) {
      for (const other of a.connected()) {
        if (nodes.includes(other) && this.#canMeet(a, other)) continue;
        a.disconnect(other);
        other.disconnect(a);
      }
    }
    for (const a of nodes) {
      for (const b of nodes) {
        if (a.self >= b.self || a.connected().includes(b) || !this.#canMeet(a, b)) continue;
        a.connect(b);
        b.connect(a);
      }
    }
  }
}

interface Path {
  readonly mesh: MemoryMesh;
  /** Aborts when the path is cut, and so ends everything that runs on it. */
  readonly cut: AbortController;
}

class MemoryMesh implements Mesh {
  readonly self: NodeId;
  readonly nodeName: string;
  readonly meshName: string;
  readonly #network: Network;
  readonly #key: Ed25519PrivateKey;
  readonly #paths = new Map<NodeId, Path>();
  #handlers: MeshHandlers | undefined;

  constructor(network: Network, nodeName: string, meshName: string, key: Ed25519PrivateKey) {
    this.self = nodeIdOf(peerIdFromString(key.publicKey.toString()));
    this.nodeName = nodeName;
    this.meshName = meshName;
    this.#network = network;
    this.#key = key;
  }

  addresses(): readonly string[] {
    return [`/memory/${this.nodeName}/p2p/${this.self}`];
  }

  async serve(handlers: MeshHandlers): Promise<void> {
    if (this.#handlers !== undefined) throw new Fault('INTERNAL', 'serve is called once');
    this.#handlers = handlers;
    this.#network.join(this);
  }

  async sign(payload: Uint8Array): Promise<SignedRecord> {
    return signRecord(this.#key, this.self, payload);
  }

  async publish(record: SignedRecord): Promise<void> {
    if (record.node !== this.self) return; // by gossip a node speaks for itself only
    for (const {mesh, cut} of this.#paths.values()) {
      if (!this.#network.isLost()) this.#give(mesh, [{record, ageMs: 0}], cut.signal);
    }
  }

  async inventory(peer: NodeId, signal: AbortSignal): Promise<Uint8Array> {
    const {mesh, cut} = this.#path(peer);
    await this.#travel(AbortSignal.any([signal, cut.signal]));
    return Uint8Array.from(mesh.#serving().inventory());
  }

  async control(peer: NodeId, request: ControlRequest, signal: AbortSignal): Promise<ControlAnswer> {
    const {mesh, cut} = this.#path(peer);
    const either = AbortSignal.any([signal, cut.signal]);
    await this.#travel(either);
    const answer = await mesh
      .#serving()
      .control?.(decodeControl(encodeControl(request)), this.self)
      .catch(refusalOf);
    await this.#travel(either);
    const refusal = {kind: 'refused', message: 'this node takes no wishes from others'} as const;
    return decodeControlAnswer(encodeControlAnswer(answer ?? refusal));
  }

  worker(peer: NodeId): Worker {
    return memoryWorker(peer, () => this.#pathTo(peer));
  }

  links(): readonly Link[] {
    return [...this.#paths.values()].map(({mesh}) => this.#link(mesh));
  }

  connected(): MemoryMesh[] {
    return [...this.#paths.values()].map(({mesh}) => mesh);
  }

  connect(other: MemoryMesh): void {
    const path = {mesh: other, cut: new AbortController()};
    this.#paths.set(other.self, path);
    this.#handlers?.linkChanged(other.self, this.#link(other));
    this.#give(other, this.#serving().newest(), path.cut.signal);
  }

  disconnect(other: MemoryMesh): void {
    this.#paths.get(other.self)?.cut.abort(new Fault('PEER_FAILED', `node ${shortNode(other.self)} went away`));
    if (this.#paths.delete(other.self)) this.#handlers?.linkChanged(other.self, undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#handlers = undefined;
    this.#network.leave(this);
    for (const {mesh} of this.#paths.values()) {
      this.disconnect(mesh);
      mesh.disconnect(this);
    }
  }

  #link(other: MemoryMesh): Link {
    return {
      node: other.self,
      admitted: true,
      refusal: undefined,
      address: `${other.nodeName}:4328`,
      path: 'direct',
      roundTripMs: 2 * this.#network.delayMs,
    };
  }

  #give(to: MemoryMesh, records: readonly AgedRecord[], cut: AbortSignal): void {
    const arrive = async (): Promise<void> => {
      await this.#travel(cut);
      for (const aged of records) to.#hear(aged, this.self);
    };
    arrive().catch(() => undefined); // the path was cut: what was under way is lost, as on a real one
  }

  #hear({record, ageMs}: AgedRecord, from: NodeId): void {
    const {node, payload, signature} = record;
    const copy = {node, payload: Uint8Array.from(payload), signature: Uint8Array.from(signature)};
    if (!this.#network.verified.isSigned(copy)) return;
    this.#handlers?.judge({record: copy, ageMs: ageMs + this.#network.delayMs}, from);
  }

  async #travel(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#network.delayMs > 0) await this.#network.environment.clock.sleep(this.#network.delayMs, signal);
    else await Promise.resolve();
    signal.throwIfAborted();
  }

  #serving(): MeshHandlers {
    if (this.#handlers === undefined) throw new Fault('PEER_FAILED', `node ${shortNode(this.self)} does not serve`);
    return this.#handlers;
  }

  #path(peer: NodeId): Path {
    const path = this.#paths.get(peer);
    if (path !== undefined) return path;
    throw new Fault('PEER_FAILED', `node ${shortNode(peer)} is not connected`, {details: {node: peer}});
  }

  #pathTo(peer: NodeId): MemoryPath {
    const {mesh, cut} = this.#path(peer);
    return {
      cut: cut.signal,
      travel: signal => this.#travel(signal),
      offer: (request, signal) => mesh.#serving().offer(request, this.self, signal),
    };
  }
}

function refusalOf(error: unknown): ControlAnswer {
  return {kind: 'refused', message: describeError(error)};
}

/** The same key for the same seed, so that whole runs can be repeated. */
function keyFromSeed(text: string): Ed25519PrivateKey {
  const seed = createHash('sha256').update(text).digest();
  const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  const spki = createPublicKey(createPrivateKey({key: pkcs8, format: 'der', type: 'pkcs8'})).export({
    format: 'der',
    type: 'spki',
  });
  const key = privateKeyFromRaw(Buffer.concat([seed, spki.subarray(-32)]));
  if (key.type !== 'Ed25519') throw new Fault('INTERNAL', 'a seed gave a key of another kind');
  return key;
}

/** mulberry32: small, fast, and good enough to lose messages by. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
