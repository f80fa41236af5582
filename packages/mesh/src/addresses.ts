import {isIP} from 'node:net';
import {networkInterfaces} from 'node:os';
import {getNetConfig} from '@libp2p/utils';
import {multiaddr} from '@multiformats/multiaddr';
import type {Multiaddr} from '@multiformats/multiaddr';
import {Fault, isLoopbackAddress} from '@hearsay/core';

/** Where something listens: a host name or an address without brackets, and a port. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Addresses of this machine as they are now; interfaces come and go. */
export function ownHosts(): string[] {
  return Object.values(networkInterfaces()).flatMap(addresses => (addresses ?? []).map(({address}) => address));
}

/** Host and port of a TCP multiaddr; undefined for any other, such as a relayed one. */
export function hostPortOf(address: Multiaddr): HostPort | undefined {
  try {
    const config = getNetConfig(address);
    const {host, port, protocol} = config;
    if (port === undefined || protocol !== 'tcp' || isRelayed(address)) return undefined;
    const zone = 'zone' in config && config.zone !== undefined ? `%${config.zone}` : '';
    return {host: `${host}${zone}`, port};
  } catch {
    return undefined;
  }
}

export function isRelayed(address: Multiaddr): boolean {
  return address.getComponents().some(({name}) => name === 'p2p-circuit');
}

/** The relay of a relayed address; undefined for a direct one. */
export function relayOf(address: Multiaddr): string | undefined {
  const components = address.getComponents();
  const circuit = components.findIndex(({name}) => name === 'p2p-circuit');
  return components.slice(0, Math.max(0, circuit)).findLast(({name}) => name === 'p2p')?.value;
}

/** The address without the id of the node at its end. */
export function withoutNode(address: Multiaddr): Multiaddr {
  const last = address.getComponents().at(-1);
  return last?.name === 'p2p' ? address.decapsulate(`/p2p/${last.value}`) : address;
}

export function formatHostPort({host, port}: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The multiaddr of a TCP listener at an IP address. */
export function tcpMultiaddr({host, port}: HostPort): Multiaddr {
  const [address = '', zone] = host.split('%');
  const scope = zone === undefined ? '' : `/ip6zone/${zone}`;
  return multiaddr(`${scope}/${isIP(address) === 6 ? 'ip6' : 'ip4'}/${address}/tcp/${port}`);
}

/** Loopback is told to others only when there is nothing else to tell: they would reach themselves by it. */
export function withoutLoopback(addresses: Multiaddr[]): Multiaddr[] {
  const reachable = addresses.filter(address => !isLoopbackAddress(hostPortOf(address)?.host ?? ''));
  return reachable.length > 0 ? reachable : addresses;
}

/** A peer that a person named. */
export type NamedPeer =
  | ({readonly kind: 'host'; readonly text: string} & HostPort)
  | {readonly kind: 'multiaddr'; readonly text: string; readonly address: Multiaddr};

/** Reads `host`, `host:port`, `[v6]:port` or a multiaddr; an empty text names nobody. */
export function parsePeer(written: string, defaultPort: number): NamedPeer | undefined {
  const text = written.trim();
  if (text === '') return undefined;
  if (text.startsWith('/')) return {kind: 'multiaddr', text, address: parseMultiaddr(text)};
  if (isIP(text) === 6) return {kind: 'host', text, host: text, port: defaultPort};
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[^\s:/[\]]+))(?::(?<port>\d{0,5}))?$/u.exec(text);
  const {v6, name, port: digits = ''} = match?.groups ?? {};
  const host = v6 ?? name;
  const port = digits === '' ? defaultPort : Number(digits);
  if (host === undefined || (v6 !== undefined && isIP(v6) !== 6) || port < 1 || port > 65535) throw badPeer(text);
  return {kind: 'host', text, host, port};
}

function parseMultiaddr(text: string): Multiaddr {
  let address: Multiaddr;
  try {
    address = multiaddr(text);
  } catch (cause) {
    throw badPeer(text, cause);
  }
  // Nodes speak TCP and nothing else; an address that nobody can dial would only be silent.
  if (isRelayed(address) || hostPortOf(address) !== undefined) return address;
  throw badPeer(text);
}

function badPeer(text: string, cause?: unknown): Fault {
  const forms =
    'host, host:port, [IPv6 address]:port such as [fe80::1%eth0]:4328, or a multiaddr such as /ip4/10.0.0.5/tcp/4328';
  return new Fault('BAD_CONFIG', `mesh.peers: ${JSON.stringify(text)} is no address of a node; write ${forms}`, {
    cause,
  });
}
