import type {Connection, Stream} from '@libp2p/interface';
import {decodeExchange, describeError, encodeExchange, exchangeBytesMax, viewNodesMax, timeLimit} from '@hearsay/core';
import type {AgedRecord, ChainedStatement, Environment, ExchangeMessage, NodeId, SignedRecord} from '@hearsay/core';
import type {Admissions} from './admission.ts';
import type {Judgement} from './doorkeeper.ts';
import {converse} from './conversation.ts';
import type {NextFrame, Talk} from './conversation.ts';
import {nodeIdOf} from './identity.ts';
import type {VerifiedRecords} from './verified-records.ts';

export const recordsProtocol = '/hearsay/records/1';

/** A handshake with a busy node on a slow link; after this the connection is given up. */
const conversationMsMax = 5000;

/** Peers whose addresses are told at once. Whoever is left out is met in one of the next exchanges. */
const toldMax = 128;

export interface ExchangeFacts {
  readonly mesh: () => string;
  readonly nodeName: string;
  /** Of a closed mesh: what shows that this node belongs to it. */
  readonly member: () => ExchangeMessage['member'];
  readonly relay: boolean;
  readonly revocations: () => readonly ChainedStatement[];
  /** Decides on a peer by its greeting and its connection. */
  readonly admits: (node: NodeId, greeting: ExchangeMessage, connection: Connection) => Promise<Judgement>;
  /** Whether a peer may hear anything of this node, by its connection alone. */
  readonly mayGreet: (connection: Connection) => Judgement;
  /** An admitted peer said more about itself. */
  readonly learned: (node: NodeId, message: ExchangeMessage) => void;
  /** The newest records held, this node's own first. */
  readonly newest: () => readonly AgedRecord[];
  readonly judge: (aged: AgedRecord, from: NodeId) => void;
  /** Where admitted peers listen. */
  readonly known: () => ExchangeMessage['addresses'];
  readonly heardOf: (node: NodeId, addresses: readonly string[]) => void;
}

interface ExchangeParts {
  readonly admissions: Admissions;
  readonly verified: VerifiedRecords;
}

/**
 * The first conversation of two nodes and the repeated one: they compare mesh names, admit each other, and then give
 * each other their newest records. Nothing but the two names is said before the names agree (law 8).
 */
export class Exchange {
  readonly #facts: ExchangeFacts;
  readonly #admissions: Admissions;
  readonly #verified: VerifiedRecords;
  readonly #environment: Environment;
  readonly #talking = new Set<string>();
  /** This node's own record, as it was last told on a connection. */
  readonly #told = new WeakMap<Connection, SignedRecord>();

  constructor(facts: ExchangeFacts, {admissions, verified}: ExchangeParts, environment: Environment) {
    this.#facts = facts;
    this.#admissions = admissions;
    this.#verified = verified;
    this.#environment = environment;
  }

  /** Begins an exchange. Never rejects: a peer that cannot even do this is let go. */
  async begin(connection: Connection): Promise<void> {
    const node = nodeIdOf(connection.remotePeer);
    const early = this.#facts.mayGreet(connection);
    if (early.kind === 'refuse') {
      this.#admissions.refuse(node, early.reason);
      return this.#partIfStranger(connection);
    }
    try {
      await this.#hold(await this.#open(connection), next => this.#ask(next, connection));
    } catch (error) {
      this.#told.delete(connection);
      this.#blame(node, error);
    }
    await this.#partIfStranger(connection);
  }

  /**
   * From now on gossip reaches the peer. Whatever this node has published since it last told the peer everything has
   * not, so that is told again; mostly there is nothing, and then no exchange is needed.
   */
  async catchUp(connection: Connection): Promise<void> {
    const own = this.#facts.newest()[0]?.record;
    if (own !== undefined && own !== this.#told.get(connection)) await this.begin(connection);
  }

  /** Answers an exchange that the peer began. */
  async answer(stream: Stream, connection: Connection): Promise<void> {
    const node = nodeIdOf(connection.remotePeer);
    // Each conversation may hold a frame of the largest size, so a stranger has one at a time.
    if (!this.#admissions.isAdmitted(node) && this.#talking.has(connection.id)) {
      stream.abort(new Error('one exchange at a time'));
      return;
    }
    this.#talking.add(connection.id);
    try {
      await this.#hold(stream, next => this.#reply(next, connection));
    } catch (error) {
      this.#told.delete(connection);
      this.#blame(node, error);
    } finally {
      this.#talking.delete(connection.id);
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

  async *#ask(next: NextFrame, connection: Connection): AsyncGenerator<Uint8Array> {
    const node = nodeIdOf(connection.remotePeer);
    yield encodeExchange(this.#greeting());
    const theirs = this.#read(node, await next());
    const refusal = await this.#judge(theirs, connection);
    if (refusal !== undefined) {
      if (theirs.refusal === undefined) yield encodeExchange(refusal);
      return;
    }
    yield encodeExchange(this.#everything(connection));
    await this.#take(theirs, node);
  }

  async *#reply(next: NextFrame, connection: Connection): AsyncGenerator<Uint8Array> {
    const node = nodeIdOf(connection.remotePeer);
    const refusal = await this.#judge(this.#read(node, await next()), connection);
    if (refusal !== undefined) {
      yield encodeExchange(refusal);
      return;
    }
    yield encodeExchange(this.#everything(connection));
    const theirs = this.#read(node, await next());
    if (theirs.refusal === undefined) await this.#take(theirs, node);
    else await this.#judge(theirs, connection);
  }

  /** A closed mesh tells strangers neither its name for people nor who is in it; its passes open nothing for others. */
  #greeting(): ExchangeMessage {
    const member = this.#facts.member();
    const name = member === undefined ? this.#facts.nodeName : '';
    return {mesh: this.#facts.mesh(), name, records: [], addresses: [], member};
  }

  #everything(connection: Connection): ExchangeMessage {
    const listener = nodeIdOf(connection.remotePeer);
    const records = this.#facts.newest().slice(0, viewNodesMax);
    if (records[0] !== undefined) this.#told.set(connection, records[0].record);
    const addresses = this.#facts.known().filter(({node}) => node !== listener);
    const revocations = this.#facts.revocations();
    return {
      ...this.#greeting(),
      name: this.#facts.nodeName,
      records,
      addresses: addresses.slice(0, toldMax),
      ...(revocations.length > 0 && {revocations}),
      ...(this.#facts.relay && {relay: true}),
    };
  }

  /** Admits, or returns what to answer instead. */
  async #judge(greeting: ExchangeMessage, connection: Connection): Promise<ExchangeMessage | undefined> {
    const node = nodeIdOf(connection.remotePeer);
    const judgement = await this.#facts.admits(node, greeting, connection);
    if (judgement.kind === 'admit') {
      this.#admissions.admit(node);
      return undefined;
    }
    this.#admissions.refuse(node, judgement.reason);
    const {member: _, ...rest} = this.#greeting();
    // Only a neighbour whose mesh has another name is told what would let the two meet.
    return {...rest, name: judgement.word === 'mesh' ? rest.name : '', refusal: judgement.word};
  }

  async #take(message: ExchangeMessage, from: NodeId): Promise<void> {
    const {records, addresses} = message;
    this.#facts.learned(from, message);
    for (const aged of records) if (this.#verified.isSigned(aged.record)) this.#facts.judge(aged, from);
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
