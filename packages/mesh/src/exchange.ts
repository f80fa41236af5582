import type {Connection, Stream} from '@libp2p/interface';
import {decodeExchange, describeError, encodeExchange, exchangeBytesMax, viewNodesMax} from '@hearsay/core';
import type {AgedRecord, Environment, ExchangeMessage, NodeId} from '@hearsay/core';
import type {Admissions} from './admission.ts';
import {converse} from './conversation.ts';
import type {NextFrame, Talk} from './conversation.ts';
import {isSigned, nodeIdOf} from './identity.ts';
import {timeLimit} from './time-limit.ts';

export const recordsProtocol = '/hearsay/records/1';

/** A handshake with a busy node on a slow link; after this the connection is given up. */
const conversationMsMax = 5000;

/** Peers whose addresses are told at once. Whoever is left out is met in one of the next exchanges. */
const toldMax = 128;

export interface ExchangeFacts {
  readonly mesh: string;
  readonly nodeName: string;
  /** The newest records held, this node's own first. */
  readonly newest: () => readonly AgedRecord[];
  readonly judge: (aged: AgedRecord, from: NodeId) => void;
  /** Where admitted peers listen. */
  readonly known: () => ExchangeMessage['addresses'];
  readonly heardOf: (node: NodeId, addresses: readonly string[]) => void;
}

/**
 * The first conversation of two nodes and the repeated one: they compare mesh names, admit each other, and then give
 * each other their newest records. Nothing but the two names is said before the names agree (law 8).
 */
export class Exchange {
  readonly #facts: ExchangeFacts;
  readonly #admissions: Admissions;
  readonly #environment: Environment;

  constructor(facts: ExchangeFacts, admissions: Admissions, environment: Environment) {
    this.#facts = facts;
    this.#admissions = admissions;
    this.#environment = environment;
  }

  /** Begins an exchange. Never rejects: a peer that cannot even do this is let go. */
  async begin(connection: Connection): Promise<void> {
    const node = nodeIdOf(connection.remotePeer);
    try {
      await this.#hold(await this.#open(connection), next => this.#ask(next, node));
    } catch (error) {
      this.#blame(node, error);
    }
    await this.#partIfStranger(connection);
  }

  /** Answers an exchange that the peer began. */
  async answer(stream: Stream, connection: Connection): Promise<void> {
    const node = nodeIdOf(connection.remotePeer);
    try {
      await this.#hold(stream, next => this.#reply(next, node));
    } catch (error) {
      this.#blame(node, error);
    }
    await this.#partIfStranger(connection);
  }

  async #open(connection: Connection): Promise<Stream> {
    using limit = timeLimit(this.#environment.clock, conversationMsMax, 'opening an exchange');
    return await connection.newStream(recordsProtocol, {signal: limit.signal});
  }

  async #hold(stream: Stream, talk: Talk): Promise<void> {
    const {clock} = this.#environment;
    await converse(stream, talk, {clock, frameBytesMax: exchangeBytesMax, msMax: conversationMsMax});
  }

  async *#ask(next: NextFrame, node: NodeId): AsyncGenerator<Uint8Array> {
    yield encodeExchange(this.#greeting());
    const theirs = this.#read(node, await next());
    if (!this.#admit(node, theirs)) return;
    yield encodeExchange(this.#everything(node));
    await this.#take(theirs, node);
  }

  async *#reply(next: NextFrame, node: NodeId): AsyncGenerator<Uint8Array> {
    if (!this.#admit(node, this.#read(node, await next()))) {
      yield encodeExchange(this.#greeting());
      return;
    }
    yield encodeExchange(this.#everything(node));
    await this.#take(this.#read(node, await next()), node);
  }

  #greeting(): ExchangeMessage {
    return {mesh: this.#facts.mesh, name: this.#facts.nodeName, records: [], addresses: []};
  }

  #everything(listener: NodeId): ExchangeMessage {
    const addresses = this.#facts.known().filter(({node}) => node !== listener);
    return {
      ...this.#greeting(),
      records: this.#facts.newest().slice(0, viewNodesMax),
      addresses: addresses.slice(0, toldMax),
    };
  }

  #admit(node: NodeId, {mesh, name}: ExchangeMessage): boolean {
    if (mesh === this.#facts.mesh) {
      this.#admissions.admit(node);
      return true;
    }
    const names = `${JSON.stringify(name)} belongs to mesh ${JSON.stringify(mesh)}`;
    this.#admissions.refuse(node, `${names}; set the same mesh.name on both nodes to let them meet`);
    return false;
  }

  async #take({records, addresses}: ExchangeMessage, from: NodeId): Promise<void> {
    for (const aged of records) if (isSigned(aged.record)) this.#facts.judge(aged, from);
    for (const {node, addresses: where} of addresses.slice(0, toldMax)) this.#facts.heardOf(node, where);
  }

  /** Whoever says something that cannot be read will say it again, so it is not dialled for a while. */
  #read(node: NodeId, frame: Uint8Array): ExchangeMessage {
    try {
      return decodeExchange(frame);
    } catch (error) {
      if (!this.#admissions.isAdmitted(node)) this.#admissions.refuse(node, describeError(error));
      throw error;
    }
  }

  /** A node that speaks another protocol is refused by name; anything else may pass with the next connection. */
  #blame(node: NodeId, error: unknown): void {
    this.#environment.log('debug', 'an exchange of records failed', {node, reason: describeError(error)});
    const foreign = error instanceof Error && error.name === 'UnsupportedProtocolError';
    if (foreign && !this.#admissions.isAdmitted(node)) {
      this.#admissions.refuse(node, 'it is no hearsay node, or one of a version that does not fit');
    }
  }

  async #partIfStranger(connection: Connection): Promise<void> {
    if (this.#admissions.isAdmitted(nodeIdOf(connection.remotePeer))) return;
    try {
      using limit = timeLimit(this.#environment.clock, conversationMsMax, 'closing a connection');
      await connection.close({signal: limit.signal});
    } catch (error) {
      connection.abort(error instanceof Error ? error : new Error(String(error)));
    }
  }
}
