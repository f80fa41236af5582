import {createHash} from 'node:crypto';
import {BlockList} from 'node:net';
import {networkInterfaces} from 'node:os';
import type {Multiaddr} from '@multiformats/multiaddr';
import multicastDns from 'multicast-dns';
import type {MulticastDNS, ResponsePacket} from 'multicast-dns';
import {describeError} from '@hearsay/core';
import type {Environment, NodeId} from '@hearsay/core';
import {hostPortOf} from './addresses.ts';
import {choosySocket} from './choosy-socket.ts';
import {readSighting} from './read-sighting.ts';

/** Interfaces come and go without a notice that Node could give. */
const rescanMs = 3000;

/** A socket loses its membership when its interface is made anew under the same address (suspend, a new DHCP lease). */
const socketAgeMsMax = 60_000;

/** Further first questions of a node that is alone: the first packets after an interface came up are often lost. */
const firstQueriesMs = [400, 1200, 3000] as const;
const queryMs = 5000;

/**
 * Everybody answers every question, so the questions of a large mesh would cost more than all else that it does at
 * rest. A node that has met others asks half as often each time, down to this; whoever is new asks for itself. And an
 * answer is heard by all, so whoever has heard others ask and answer need not (RFC 6762, 7.3): a network hears one
 * question in that time, however many nodes are on it.
 */
const queryMsMax = 30_000;

/** Who asks next is left to chance, as a part of the wait. */
const querySpread = 0.1;

/** One multicast answer serves everybody who has just asked, so that many nodes do not answer many times each. */
const answerGapMs = 250;

/**
 * A newcomer that has met so many hears of the rest by them, so that not all of a large mesh need answer each question.
 * Who answers is left to chance, in this time for each node there is; a node that has met fewer answers at once.
 */
const answersEnough = 8;
const answerSpreadMs = 10;
const answerSpreadMsMax = 500;

/**
 * More addresses than this in one answer would not fit a packet, and nobody listens on so many ports of one address.
 */
const addressesMax = 4;

/** Most interfaces that are watched; container hosts have hundreds of virtual ones. */
const interfacesMax = 32;

/** Kinds of trouble that are told once each; far more than there are. */
const reportsMax = 64;

/** The port of multicast DNS. */
const dnsPort = 5353;

const addressKey = 'dnsaddr=';

export interface LanDiscoveryConfig {
  readonly mesh: string;
  readonly self: NodeId;
  /** How many have been met: whoever is alone asks often, and whoever has many leaves it to others to answer. */
  readonly peers: () => number;
  /** Every address this node listens at, wildcards resolved, without its id. */
  readonly listening: () => readonly Multiaddr[];
  /** Called at every sighting, also of nodes that are known: a peer that came back is met again. */
  readonly sighted: (node: NodeId, addresses: readonly Multiaddr[]) => void;
  /** Somebody at these addresses announces this node's own id. */
  readonly sightedSelf: (addresses: readonly Multiaddr[]) => void;
  /** UDP port; only for tests. */
  readonly port?: number;
}

interface Watched {
  readonly dns: MulticastDNS;
  readonly network: BlockList;
  readonly openedMs: number;
  answeredMs: number;
  /** When anybody has last asked there, and how many others have answered since. */
  askedMs: number;
  answers: number;
}

const nothingHeard = {answeredMs: -Infinity, askedMs: -Infinity, answers: 0} as const;

interface Interface {
  readonly address: string;
  readonly cidr: string;
}

/** The service tag of a mesh: nodes of other meshes do not even hear each other. A DNS label has 63 bytes at most. */
export function serviceName(mesh: string): string {
  const plain = /^[a-z0-9][a-z0-9-]{0,39}$/u.test(mesh);
  const label = plain ? mesh : `x${createHash('sha256').update(mesh).digest('hex').slice(0, 24)}`;
  return `_hearsay-${label}._udp.local`;
}

/**
 * Finds nodes of the same mesh on every network this machine is on, by multicast DNS in the wire format of
 * `@libp2p/mdns`. That one speaks on the default-route interface only and so finds nothing on a network without a
 * router; here every IPv4 interface, loopback included, has its own socket.
 */
export class LanDiscovery implements Disposable {
  readonly #config: LanDiscoveryConfig;
  readonly #environment: Environment;
  readonly #service: string;
  /** A name stands in full where a packet has it first, so its first label can be looked for. */
  readonly #tag: string;
  readonly #watched = new Map<string, Watched>();
  readonly #timers = new Set<Disposable>();
  readonly #reported = new Set<string>();
  #closed = false;

  constructor(config: LanDiscoveryConfig, environment: Environment) {
    this.#config = config;
    this.#environment = environment;
    this.#service = serviceName(config.mesh);
    this.#tag = this.#service.slice(0, this.#service.indexOf('.'));
    this.#rescan();
    for (const ms of firstQueriesMs) {
      this.#after(ms, () => {
        if (this.#isAlone()) for (const address of this.#watched.keys()) this.#ask(address);
      });
    }
    this.#queryRepeatedly(queryMs);
  }

  #isAlone(): boolean {
    return this.#config.peers() === 0;
  }

  #after(ms: number, run: () => void): void {
    const timer = this.#environment.clock.after(ms, () => {
      this.#timers.delete(timer);
      if (!this.#closed) run();
    });
    this.#timers.add(timer);
  }

  /** Looks again sooner when a network was asked by another meanwhile: it is to be asked so long after that. */
  #queryRepeatedly(waitMs: number, lookMs: number = waitMs): void {
    this.#after(lookMs, () => {
      const now = this.#environment.clock.monotonicMs();
      const served = [...this.#watched.values()].filter(each => each.answers > 0 && now - each.askedMs < waitMs);
      for (const [address, watched] of this.#watched) if (!served.includes(watched)) this.#ask(address);
      const nextMs = this.#isAlone() ? queryMs : Math.min(2 * waitMs, queryMsMax);
      const sinceMs = Math.max(0, ...served.map(({askedMs}) => now - askedMs));
      const spreadMs = this.#environment.random.next() * querySpread * nextMs;
      this.#queryRepeatedly(nextMs, nextMs - sinceMs + spreadMs);
    });
  }

  #rescan(): void {
    const now = this.#environment.clock.monotonicMs();
    const present = new Map(ipv4Interfaces().map(one => [one.address, one]));
    for (const [address, {openedMs, dns}] of this.#watched) {
      const one = present.get(address);
      if (one !== undefined && now - openedMs < socketAgeMsMax) continue;
      dns.destroy();
      if (one === undefined) this.#watched.delete(address);
      else this.#watch(one, now); // what was heard there still counts
    }
    for (const [address, one] of present) {
      if (this.#watched.has(address) || this.#watched.size >= interfacesMax) continue;
      this.#watch(one, now);
      this.#ask(address);
    }
    this.#after(rescanMs, () => this.#rescan());
  }

  #watch({address, cidr}: Interface, now: number): void {
    const network = networkOf(cidr);
    const socket = choosySocket((message, from) => message.includes(this.#tag) && this.#comesFrom(network, from));
    const dns = multicastDns({socket, interface: address, bind: '0.0.0.0', port: this.#config.port ?? dnsPort});
    const watched = {...(this.#watched.get(address) ?? nothingHeard), dns, network, openedMs: now};
    this.#watched.set(address, watched);
    dns.on('error', error => {
      this.#report(address, error);
      dns.destroy();
      if (this.#watched.get(address) === watched) this.#watched.delete(address); // the next rescan tries again
    });
    dns.on('warning', error => {
      if ('syscall' in error) this.#report(address, error); // the others are about packets that nobody can read
    });
    dns.on('query', ({questions = []}) => {
      if (questions.some(({name}) => name === this.#service)) this.#answer(address, watched);
    });
    dns.on('response', response => this.#hear(response, watched));
  }

  #ask(address: string): void {
    this.#watched
      .get(address)
      ?.dns.query({questions: [{name: this.#service, type: 'PTR'}]}, error => this.#report(address, error));
  }

  /** All sockets hear every packet, so the one whose network it came from takes it; all do if it fits none. */
  #comesFrom(network: BlockList, from: string): boolean {
    return network.check(from, 'ipv4') || ![...this.#watched.values()].some(each => each.network.check(from, 'ipv4'));
  }

  #answer(address: string, watched: Watched): void {
    const now = this.#environment.clock.monotonicMs();
    watched.askedMs = now;
    watched.answers = 0;
    const peers = this.#config.peers();
    if (peers < answersEnough) return this.#answerNow(address, watched);
    const spreadMs = Math.min(answerSpreadMsMax, answerSpreadMs * peers);
    this.#after(this.#environment.random.next() * spreadMs, () => {
      if (watched.answers < answersEnough) this.#answerNow(address, watched);
    });
  }

  #answerNow(address: string, watched: Watched): void {
    try {
      this.#respond(address, watched);
    } catch (error) {
      this.#report(address, error); // the system does not tell its addresses while too much is open
    }
  }

  #respond(address: string, watched: Watched): void {
    const now = this.#environment.clock.monotonicMs();
    if (now - watched.answeredMs < answerGapMs) return;
    const {self, listening} = this.#config;
    const addresses = listening().filter(each => hostPortOf(each)?.host === address);
    if (addresses.length === 0) return;
    watched.answeredMs = now;
    const name = `${self.toLowerCase().slice(-40)}.${this.#service}`;
    const texts = addresses.slice(0, addressesMax).map(each => `${addressKey}${each.toString()}/p2p/${self}`);
    watched.dns.respond(
      [
        {name: this.#service, type: 'PTR', class: 'IN', ttl: 120, data: name},
        ...texts.map(data => ({name, type: 'TXT', class: 'IN', ttl: 120, data}) as const),
      ],
      error => this.#report(address, error),
    );
  }

  #hear({answers = [], additionals = []}: ResponsePacket, watched: Watched): void {
    if (!answers.some(({type, name}) => type === 'PTR' && name === this.#service)) return;
    const texts = [...answers, ...additionals].flatMap(answer => (answer.type === 'TXT' ? [answer.data].flat() : []));
    const seen = new Map<NodeId, Multiaddr[]>();
    for (const text of texts.map(String).filter(each => each.startsWith(addressKey))) {
      const sighting = readSighting(text.slice(addressKey.length));
      if (sighting === undefined) continue;
      const known = seen.get(sighting.node) ?? [];
      if (known.length < addressesMax) seen.set(sighting.node, [...known, sighting.address]);
    }
    for (const [node, addresses] of seen) {
      if (node === this.#config.self) {
        this.#config.sightedSelf(addresses);
        continue;
      }
      watched.answers += 1;
      this.#config.sighted(node, addresses);
    }
  }

  /** Tells once why a network cannot be searched; without this line an empty mesh would have no explanation (R54). */
  #report(address: string, error: unknown): void {
    if (!(error instanceof Error) || this.#closed) return; // a closed socket reports nothing at all, not even null
    const code = 'code' in error ? String(error.code) : error.message;
    const key = `${address} ${code}`;
    if (this.#reported.has(key) || this.#reported.size >= reportsMax) return;
    this.#reported.add(key);
    this.#environment.log(
      'warn',
      `cannot search for nodes by multicast on ${address}; name them in mesh.peers instead`,
      {
        reason: describeError(error),
      },
    );
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    for (const timer of this.#timers) timer[Symbol.dispose]();
    for (const {dns} of this.#watched.values()) dns.destroy();
    this.#watched.clear();
  }
}

function ipv4Interfaces(): Interface[] {
  return Object.values(networkInterfaces())
    .flatMap(addresses => addresses ?? [])
    .flatMap(({family, address, cidr}) => (family === 'IPv4' && cidr !== null ? [{address, cidr}] : []));
}

function networkOf(cidr: string): BlockList {
  const [network = '', prefix = ''] = cidr.split('/');
  const list = new BlockList();
  list.addSubnet(network, Number(prefix), 'ipv4');
  return list;
}
