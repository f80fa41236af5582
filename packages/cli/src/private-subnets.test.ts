import type {NetworkInterfaceInfo} from 'node:os';
import test from 'ava';
import {privateSubnets} from './private-subnets.ts';

const v4 = (address: string, netmask: string, bits: number, internal = false): NetworkInterfaceInfo => ({
  family: 'IPv4',
  address,
  netmask,
  cidr: `${address}/${bits}`,
  mac: '00:00:00:00:00:00',
  internal,
});

test('private networks are named once each, without loopback and public ones', t => {
  t.deepEqual(
    privateSubnets({
      lo: [v4('127.0.0.1', '255.0.0.0', 8, true)],
      eth0: [v4('192.168.1.77', '255.255.255.0', 24), v4('203.0.113.9', '255.255.255.0', 24)],
      wlan0: [v4('192.168.1.78', '255.255.255.0', 24)],
      tun0: [v4('172.20.130.5', '255.255.192.0', 18)],
      down: undefined,
    }),
    ['192.168.1.0/24', '172.20.128.0/18'],
  );
});
