import {
  Fault,
  firstTrusted,
  isInSubnet,
  isPrivateSubnet,
  isTrustedNetwork,
  judgeAddress,
  normalSubnet,
  trustOf,
} from '@hearsay/core';
import type {Environment, Network, NetworkReport, Trust, TrustedNetwork} from '@hearsay/core';
import type {Membership} from './membership.ts';
import {askForHardware, readNetworks} from './read-networks.ts';
import type {NetworkSources} from './read-networks.ts';

/** A look at the interfaces costs less than a millisecond, but every connection asks. */
const freshMs = 1000;

/** A router answers the question for its hardware address within milliseconds. */
const hardwareMsMax = 1000;
const hardwarePauseMs = 50;

/** How often it is asked again while it does not answer. */
const askAgainMs = 3000;

/** Which networks this machine is on, and whose addresses count as home. */
export class TrustedNetworks {
  readonly #membership: Membership;
  readonly #sources: NetworkSources;
  readonly #environment: Environment;
  #networks: readonly Network[] = [];
  #readMs = -Infinity;
  #askedMs = -Infinity;

  constructor(membership: Membership, sources: NetworkSources, environment: Environment) {
    this.#membership = membership;
    this.#sources = sources;
    this.#environment = environment;
  }

  /** At the first start on a network, trusts it: the machine was plugged in there by its owner. */
  async begin(): Promise<void> {
    if (this.#membership.state.trusted !== undefined) return;
    const networks = await this.#withHardware();
    const trusted = firstTrusted(networks);
    if (trusted.length === 0) return;
    await this.#membership.update(() => ({trusted}));
    const openTo = trusted.flatMap(trust => (trust.kind === 'network' ? trust.subnets : []));
    this.#environment.log('info', 'this network is trusted from now on', {openTo});
  }

  judge(address: string): Trust {
    return judgeAddress(address, this.#current(), this.#trusts());
  }

  /** Whether the address is on a network that this machine is part of, trusted or not. */
  isHere(address: string): boolean {
    return this.#current().some(({subnets, addresses}) =>
      [...subnets, ...addresses.flatMap(own => normalSubnet(own) ?? [])].some(subnet => isInSubnet(address, subnet)),
    );
  }

  /** Subnets whose machines are admitted here and now. */
  openTo(): readonly string[] {
    const trusts = this.#trusts();
    const here = this.#current().filter(network => isTrustedNetwork(network, trusts));
    const routed = trusts.flatMap(trust => (trust.kind === 'subnet' ? [trust.subnet] : []));
    return [...new Set([...here.flatMap(({subnets}) => subnets), ...routed])];
  }

  /** A network that could be trusted and is not, for people. */
  untrusted(): readonly Network[] {
    const trusts = this.#trusts();
    const lan = this.#current().filter(({kind, subnets}) => kind === 'lan' && subnets.length > 0);
    return lan.filter(network => !isTrustedNetwork(network, trusts));
  }

  report(): readonly NetworkReport[] {
    const trusts = this.#trusts();
    const networks = this.#current();
    const here = networks.map(network => ({
      interface: network.interface,
      kind: network.kind,
      subnets: network.subnets,
      gateway: network.gateway,
      trusted: isTrustedNetwork(network, trusts),
      present: true,
    }));
    const away = trusts.filter(trust => !networks.some(network => isTrustedNetwork(network, [trust])));
    return [...here, ...away.map(describeAway)];
  }

  /** Trusts an interface that is here, or a subnet. Throws BAD_REQUEST for anything else. */
  async trust(which: string): Promise<void> {
    const network = (await this.#withHardware()).find(one => one.interface === which);
    const subnet = normalSubnet(which);
    if (network === undefined && subnet === undefined) {
      const names = this.#current().map(one => one.interface);
      throw new Fault('BAD_REQUEST', `${which} is neither a subnet nor an interface (${names.join(', ')})`);
    }
    if (network === undefined ? !isPrivateSubnet(subnet ?? '') : network.subnets.length === 0) {
      const what = network === undefined ? 'has public addresses' : 'has no private subnet';
      const todo = 'let its machines in by invite: hearsay lock, then hearsay invite';
      throw new Fault('BAD_REQUEST', `${which} ${what}, and only private ones are ever trusted; ${todo}`);
    }
    const matching = this.#current().find(one => subnet !== undefined && one.subnets.includes(subnet));
    const known = network ?? matching;
    const added: TrustedNetwork = known === undefined ? {kind: 'subnet', subnet: subnet ?? ''} : trustOf(known);
    const text = JSON.stringify(added);
    await this.#membership.update(({trusted = []}) => ({
      trusted: [...trusted.filter(one => JSON.stringify(one) !== text), added],
    }));
  }

  /** Trusts an interface or a subnet no longer. Throws BAD_REQUEST when it was not trusted. */
  async forget(which: string): Promise<void> {
    const network = this.#current().find(one => one.interface === which);
    const subnet = normalSubnet(which);
    const isMeant = (trust: TrustedNetwork): boolean => {
      if (network !== undefined && isTrustedNetwork(network, [trust])) return true;
      if (trust.kind === 'interface') return trust.interface === which;
      return subnet !== undefined && (trust.kind === 'subnet' ? [trust.subnet] : trust.subnets).includes(subnet);
    };
    const trusts = this.#trusts();
    const kept = trusts.filter(trust => !isMeant(trust));
    if (kept.length === trusts.length)
      throw new Fault('BAD_REQUEST', `${which} was not trusted; see: hearsay network ls`);
    await this.#membership.update(() => ({trusted: kept}));
  }

  #trusts(): readonly TrustedNetwork[] {
    return this.#membership.state.trusted ?? [];
  }

  #current(): readonly Network[] {
    const nowMs = this.#environment.clock.monotonicMs();
    if (nowMs - this.#readMs < freshMs) return this.#networks;
    this.#readMs = nowMs;
    const before = this.#networks;
    this.#networks = readNetworks(this.#sources).map(network => withKnownHardware(network, before));
    const silent = this.#networks.filter(isSilent);
    if (silent.length > 0 && nowMs - this.#askedMs > askAgainMs) {
      this.#askedMs = nowMs;
      for (const {gateway} of silent) if (gateway !== undefined) askForHardware(gateway);
    }
    return this.#networks;
  }

  async #withHardware(): Promise<readonly Network[]> {
    const {clock} = this.#environment;
    const untilMs = clock.monotonicMs() + hardwareMsMax;
    for (;;) {
      this.#readMs = -Infinity;
      const networks = this.#current();
      if (!networks.some(isSilent) || clock.monotonicMs() > untilMs) return networks;
      await clock.sleep(hardwarePauseMs);
    }
  }
}

function isSilent({kind, gateway, gatewayHardware}: Network): boolean {
  return kind === 'lan' && gateway !== undefined && gatewayHardware === undefined;
}

/** The system forgets hardware addresses that it does not need; the cable has not moved for that. */
function withKnownHardware(network: Network, before: readonly Network[]): Network {
  if (!isSilent(network)) return network;
  const same = before.find(
    ({interface: name, gateway, addresses}) =>
      name === network.interface && gateway === network.gateway && addresses.join() === network.addresses.join(),
  );
  return same === undefined ? network : {...network, gatewayHardware: same.gatewayHardware};
}

function describeAway(trust: TrustedNetwork): NetworkReport {
  const common = {gateway: undefined, trusted: true, present: false};
  switch (trust.kind) {
    case 'interface':
      return {...common, interface: trust.interface, kind: 'overlay', subnets: []};
    case 'subnet':
      return {...common, interface: '-', kind: 'subnet', subnets: [trust.subnet]};
    case 'network':
      return {...common, interface: '-', kind: 'lan', subnets: trust.subnets, gateway: trust.gateway};
  }
}
