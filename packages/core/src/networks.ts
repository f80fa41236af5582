import {isInSubnet, isLinkLocal6, isLoopbackAddress, isPrivateAddress, normalSubnet} from './subnets.ts';

/** A network that this machine is part of right now, as its operating system says. */
export interface Network {
  readonly interface: string;
  /** `overlay`: a VPN that authenticates its members itself; `virtual`: containers and virtual machines. */
  readonly kind: 'lan' | 'overlay' | 'virtual';
  /** Private subnets of the interface, in normal form, IPv6 link-local ones left out. */
  readonly subnets: readonly string[];
  /** This machine's own addresses there. */
  readonly addresses: readonly string[];
  /** The router, if there is one, and its hardware address, which no other network has. */
  readonly gateway: string | undefined;
  readonly gatewayHardware: string | undefined;
}

/** What a person trusts, or what was there at the first start. */
export type TrustedNetwork =
  /** A network by what tells it from others: many homes and cafés use 192.168.1.0/24. */
  | {
      readonly kind: 'network';
      readonly subnets: readonly string[];
      readonly gateway: string | undefined;
      readonly gatewayHardware: string | undefined;
    }
  /** An overlay keeps its name, and only its own members are on it. */
  | {readonly kind: 'interface'; readonly interface: string}
  /** Addresses behind a router that a person vouches for. */
  | {readonly kind: 'subnet'; readonly subnet: string};

export type Trust =
  | {readonly kind: 'trusted'}
  /** `network`: what a person could trust to let it in; undefined when nothing would. */
  | {readonly kind: 'untrusted'; readonly network: string | undefined; readonly why: string};

const trusted: Trust = {kind: 'trusted'};

/** Pure: how interfaces that other software makes are called on Linux, macOS and Windows. */
export function networkKind(name: string): Network['kind'] {
  if (/^(?:tailscale|wg|tun|tap|utun|zt|nebula|ham|nm-)/iu.test(name)) return 'overlay';
  if (/^(?:docker|br-[\da-f]{6,}|veth[\da-f]|virbr|vmnet|vboxnet|vEthernet|cni|flannel|podman|lxc|lxd)/iu.test(name)) {
    return 'virtual';
  }
  return 'lan';
}

/** The networks of a first start: where it is plugged in, and neither VPNs nor containers. */
export function firstTrusted(networks: readonly Network[]): readonly TrustedNetwork[] {
  return networks.filter(({kind, subnets}) => kind === 'lan' && subnets.length > 0).map(trustOf);
}

/** What to remember of a network so that it is known again. */
export function trustOf(network: Network): TrustedNetwork {
  if (network.kind === 'overlay') return {kind: 'interface', interface: network.interface};
  const {subnets, gateway, gatewayHardware} = network;
  return {kind: 'network', subnets, gateway, gatewayHardware};
}

/**
 * True when the network is one of the trusted. A router that is known by its hardware address must have that address;
 * one that is silent now is believed only by a network without any router.
 */
export function isTrustedNetwork(network: Network, trusts: readonly TrustedNetwork[]): boolean {
  return trusts.some(trust => matches(network, trust));
}

function matches(network: Network, trust: TrustedNetwork): boolean {
  switch (trust.kind) {
    case 'interface':
      return network.interface === trust.interface;
    case 'subnet':
      return network.subnets.includes(trust.subnet);
    case 'network':
      return (
        network.gateway === trust.gateway &&
        (trust.gatewayHardware === undefined || network.gatewayHardware === trust.gatewayHardware) &&
        network.subnets.some(subnet => trust.subnets.includes(subnet))
      );
  }
}

/** Judges an address as the connection has it, never as a peer claims it. Mode `lan` admits whom this trusts. */
export function judgeAddress(address: string, networks: readonly Network[], trusts: readonly TrustedNetwork[]): Trust {
  if (isLoopbackAddress(address) || networks.some(({addresses}) => addresses.includes(bare(address)))) return trusted;
  if (!isPrivateAddress(address)) {
    return {kind: 'untrusted', network: undefined, why: `${bare(address)} is a public address`};
  }
  if (trusts.some(trust => trust.kind === 'subnet' && isInSubnet(address, trust.subnet))) return trusted;
  const zone = /%(?<zone>.+)$/u.exec(address)?.groups?.['zone'];
  const here = isLinkLocal6(address)
    ? networks.filter(({interface: name}) => zone === undefined || name === zone)
    : networks.filter(({subnets}) => subnets.some(subnet => isInSubnet(address, subnet)));
  // Equal subnets on two interfaces, or a link-local address without its interface: all must be trusted.
  if (here.length > 0 && here.every(network => isTrustedNetwork(network, trusts))) return trusted;
  const unknown = here.find(network => !isTrustedNetwork(network, trusts));
  const name = unknown?.interface ?? normalSubnet(bare(address));
  const why = `${bare(address)} is on a network that this node does not trust`;
  return {kind: 'untrusted', network: name, why};
}

function bare(address: string): string {
  return address.replace(/%.*$/u, '').replace(/^::ffff:(?=[\d.]+$)/iu, '');
}
