import test from 'ava';
import {readNetworks} from './read-networks.ts';
import type {NetworkSources} from './read-networks.ts';

const routes = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
wlan0	00000000	0101A8C0	0003	0	0	600	00000000	0	0	0
wlan0	00000000	FE01A8C0	0003	0	0	100	00000000	0	0	0
wlan0	0001A8C0	00000000	0001	0	0	600	00FFFFFF	0	0	0
docker0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
`;
const neighbours = `IP address       HW type     Flags       HW address            Mask     Device
192.168.1.254    0x1         0x2         AA:bb:cc:00:11:22     *        wlan0
192.168.1.1      0x1         0x0         00:00:00:00:00:00     *        wlan0
`;
const v4 = (address: string, prefix: number) =>
  ({address, cidr: `${address}/${prefix}`, netmask: '', family: 'IPv4', mac: '', internal: false}) as const;
const v6 = (address: string, prefix: number) =>
  ({address, cidr: `${address}/${prefix}`, netmask: '', family: 'IPv6', mac: '', internal: false, scopeid: 0}) as const;

const linux: NetworkSources = {
  interfaces: () => ({
    lo: [{...v4('127.0.0.1', 8), internal: true}],
    wlan0: [v4('192.168.1.7', 24), v6('fd00:1::7', 64), v6('fe80::7', 64), v6('2001:db8::7', 64)],
    docker0: [v4('172.17.0.1', 16)],
  }),
  routes: () => routes,
  neighbours: () => neighbours,
};

test('a network has its private subnets, its cheapest router, and the hardware of that router', t => {
  const [wlan, docker] = readNetworks(linux);
  t.like(wlan, {
    interface: 'wlan0',
    kind: 'lan',
    subnets: ['192.168.1.0/24', 'fd00:1::/64'],
    gateway: '192.168.1.254',
    gatewayHardware: 'aa:bb:cc:00:11:22',
  });
  t.like(docker, {interface: 'docker0', kind: 'virtual', gateway: undefined, gatewayHardware: undefined});
});

test('where the system tells no routes, a network is its subnet', t => {
  const [wlan] = readNetworks({...linux, routes: () => '', neighbours: () => ''});
  t.like(wlan, {subnets: ['192.168.1.0/24', 'fd00:1::/64'], gateway: undefined});
});

test('route tables that make no sense name no router', t => {
  for (const text of ['x', 'a\nb', 'h\nwlan0\t00000000\tZZZZZZZZ\t', 'h\nwlan0\t00000000']) {
    t.is(readNetworks({...linux, routes: () => text})[0]?.gateway, undefined);
  }
});
