import {BlockList, isIPv4} from 'node:net';
import type {NetworkInterfaceInfo} from 'node:os';

/** As the mesh judges: RFC 1918, shared (Tailscale), link-local and, of IPv6, unique local. */
const privateAddresses = new BlockList();
privateAddresses.addSubnet('10.0.0.0', 8);
privateAddresses.addSubnet('172.16.0.0', 12);
privateAddresses.addSubnet('192.168.0.0', 16);
privateAddresses.addSubnet('100.64.0.0', 10);
privateAddresses.addSubnet('169.254.0.0', 16);
privateAddresses.addSubnet('fc00::', 7, 'ipv6');

/**
 * The private networks this machine is in, such as `192.168.1.0/24`, from `os.networkInterfaces()`: whose machines
 * the mesh admits. IPv6 link-local ones are left out, since they are the same cables.
 */
export function privateSubnets(
  interfaces: Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>,
): string[] {
  const addresses = Object.values(interfaces).flatMap(entries => entries ?? []);
  const subnets = addresses
    .filter(({address, internal}) => !internal && privateAddresses.check(address, isIPv4(address) ? 'ipv4' : 'ipv6'))
    .map(({address, netmask, cidr}) =>
      isIPv4(address) ? `${networkOf(address, netmask)}/${cidr?.split('/')[1] ?? '32'}` : (cidr ?? address),
    );
  return [...new Set(subnets)];
}

function networkOf(address: string, netmask: string): string {
  const mask = netmask.split('.').map(Number);
  return address
    .split('.')
    .map((part, index) => Number(part) & (mask[index] ?? 255))
    .join('.');
}
