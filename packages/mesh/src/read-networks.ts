import {createSocket} from 'node:dgram';
import {readFileSync} from 'node:fs';
import {networkInterfaces} from 'node:os';
import type {NetworkInterfaceInfo} from 'node:os';
import {isLoopbackAddress, isPrivateAddress, networkKind, normalSubnet} from '@hearsay/core';
import type {Network} from '@hearsay/core';

/** What the operating system says, as text: replaced in tests by what other systems have said. */
export interface NetworkSources {
  readonly interfaces: () => Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;
  /** Linux: `/proc/net/route` and `/proc/net/arp`; empty where there are none. */
  readonly routes: () => string;
  readonly neighbours: () => string;
}

export const systemNetworks: NetworkSources = {
  interfaces: networkInterfaces,
  routes: () => readQuietly('/proc/net/route'),
  neighbours: () => readQuietly('/proc/net/arp'),
};

/** Interfaces beyond this are not looked at; container hosts have hundreds of virtual ones. */
const interfacesMax = 64;

/**
 * The networks of this machine as they are now. Where the system has no route table that can be read (macOS, Windows),
 * a network is known by its subnet only.
 */
export function readNetworks(sources: NetworkSources): readonly Network[] {
  const gateways = parseGateways(sources.routes());
  const hardware = parseNeighbours(sources.neighbours());
  return Object.entries(sources.interfaces())
    .flatMap(([name, infos = []]) => {
      const own = infos.filter(({internal, address}) => !internal && !isLoopbackAddress(address));
      if (own.length === 0) return [];
      const subnets = own
        .filter(({address, cidr}) => cidr !== null && isPrivateAddress(address) && !/^fe[89ab]/iu.test(address))
        .flatMap(({cidr}) => normalSubnet(cidr ?? '') ?? []);
      const gateway = gateways.get(name);
      const network: Network = {
        interface: name,
        kind: networkKind(name),
        subnets: [...new Set(subnets)],
        addresses: own.map(({address}) => address),
        gateway,
        gatewayHardware: gateway === undefined ? undefined : hardware.get(`${name} ${gateway}`),
      };
      return [network];
    })
    .slice(0, interfacesMax);
}

/** Makes the system ask for the router's hardware address; the answer is read a moment later. */
export function askForHardware(gateway: string): void {
  const discardPort = 9;
  const socket = createSocket('udp4');
  socket.on('error', () => socket.close()); // no way to the router: then it is no network that could be known again
  socket.send(new Uint8Array(), discardPort, gateway, () => socket.close());
}

/** The default route of each interface, the cheapest first. */
function parseGateways(text: string): ReadonlyMap<string, string> {
  const gateways = new Map<string, {address: string; metric: number}>();
  for (const line of text.split('\n').slice(1)) {
    const [name = '', destination, gateway = '', , , , metricText] = line.trim().split(/\s+/u);
    if (destination !== '00000000' || !/^[\dA-F]{8}$/iu.test(gateway) || gateway === '00000000') continue;
    const address = [6, 4, 2, 0].map(at => Number.parseInt(gateway.slice(at, at + 2), 16)).join('.');
    const metric = Number(metricText ?? 0);
    const known = gateways.get(name);
    if (known === undefined || metric < known.metric) gateways.set(name, {address, metric});
  }
  return new Map([...gateways].map(([name, {address}]) => [name, address]));
}

function parseNeighbours(text: string): ReadonlyMap<string, string> {
  const lines = text.split('\n').slice(1);
  const entries = lines.flatMap(line => {
    const [address, , flags, hardware = '', , name] = line.trim().split(/\s+/u);
    const isKnown = flags !== '0x0' && /^(?:[\da-f]{2}:){5}[\da-f]{2}$/iu.test(hardware) && !/^[0:]+$/u.test(hardware);
    return isKnown ? [[`${name} ${address}`, hardware.toLowerCase()] as const] : [];
  });
  return new Map(entries);
}

function readQuietly(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // another system, or one that hides it
  }
}
