import {firstTrusted, isTrustedNetwork} from '@hearsay/core';
import type {NetworkReport} from '@hearsay/core';
import {meshStateFile} from './mesh-parts.ts';
import {loadMeshState} from './mesh-state.ts';
import {readNetworks, systemNetworks} from './read-networks.ts';

/**
 * The networks of this machine and whether a node with this key would trust them, for when no daemon can be asked. A
 * node that was never started will trust those of its first start.
 */
export async function inspectNetworks(identityFile: string): Promise<readonly NetworkReport[]> {
  const networks = readNetworks(systemNetworks);
  const trusts = (await loadMeshState(meshStateFile(identityFile))).trusted ?? firstTrusted(networks);
  return networks.map(network => ({
    interface: network.interface,
    kind: network.kind,
    subnets: network.subnets,
    gateway: network.gateway,
    trusted: isTrustedNetwork(network, trusts),
    present: true,
  }));
}
