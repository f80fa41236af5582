import {BlockList, isIP} from 'node:net';
import {networkInterfaces} from 'node:os';
import {getNetConfig} from '@libp2p/utils';
import {multiaddr} from '@multiformats/multiaddr';
import type {Multiaddr} from '@multiformats/multiaddr';
import {Fault} from '@hearsay/core';

/** Where something listens: a host name or an address without brackets, and a port. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Ranges that cannot come from the public internet: RFC 1918, shared (Tailscale), link-local, unique local. */
const privateRanges = blockList([
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '169.254.0.0/16',
  'fe80::/10',
  'fc00::/7',
]);

const loopback = blockList(['127.0.0.0/8', '::1/128']);

/** `127.0.0.1` and its like. */
export function isLoopback(host: string): boolean {
  return contains(loopback, host);
}

/** Addresses of this machine as they are now; interfaces come and go. */
export function ownHosts(): string[] {
  return Object.values(networkInterfaces()).flatMap(addresses => (addresses ?? []).map(({address}) => address));
}

/**
 * True when the address is on this machine or in a private subnet that this machine is part of: the first form of the
 * trusted network of mode `lan`.
 */
export function isNear(host: string): boolean {
  if (isLoopback(host) || ownHosts().includes(host)) return true;
  const subnets = Object.values(networkInterfaces())
    .flatMap(addresses => addresses ?? [])
    .filter(({address, cidr}) => cidr !== null && contains(privateRanges, address))
    .map(({cidr}) => cidr ?? '');
  return contains(blockList(subnets), host);
}

function blockList(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = '', prefix = ''] = subnet.split('/');
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** Also right for IPv4 addresses that arrive mapped into IPv6. */
function contains(list: BlockList, host: string): boolean {
  const bare = host.replace(/%.*$/u, ''); // a zone is no part of the address
  const family = isIP(bare);
  return family !== 0 && list.check(bare, family === 6 ? 'ipv6' : 'ipv4');
}

/** Host and port of a TCP multiaddr; undefined for any other, such as a relayed one. */
export function hostPortOf(address: Multiaddr): HostPort | undefined {
  try {
    const {host, port, protocol} = getNetConfig(address);
    const relayed = address.getComponents().some(({name}) => name === 'p2p-circuit');
    if (port === undefined || protocol !== 'tcp' || relayed) return undefined;
    return {host, port};
  } catch {
    return undefined;
  }
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
  const reachable = addresses.filter(address => !isLoopback(hostPortOf(address)?.host ?? ''));
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
  try {
    return multiaddr(text);
  } catch (cause) {
    throw badPeer(text, cause);
  }
}

function badPeer(text: string, cause?: unknown): Fault {
  const forms = 'host, host:port, [IPv6 address]:port or a multiaddr such as /ip4/10.0.0.5/tcp/4328';
  return new Fault('BAD_CONFIG', `mesh.peers: ${JSON.stringify(text)} is no address of a node; write ${forms}`, {
    cause,
  });
}
