import test from 'ava';
import {firstTrusted, isTrustedNetwork, judgeAddress, networkKind, trustOf} from './networks.ts';
import type {Network} from './networks.ts';

function network(name: string, subnet: string, changes: Partial<Network> = {}): Network {
  return {
    interface: name,
    kind: networkKind(name),
    subnets: [subnet],
    addresses: [subnet.replace(/0\/\d+$/u, '2')],
    gateway: subnet.replace(/0\/\d+$/u, '1'),
    gatewayHardware: `02:00:00:00:00:${name.length}`,
    ...changes,
  };
}

const home = network('eth0', '192.168.1.0/24');
const docker = network('docker0', '172.17.0.0/16', {gateway: undefined, gatewayHardware: undefined});
const tailscale = network('tailscale0', '100.64.0.7/32', {gateway: undefined, gatewayHardware: undefined});

test('R51: the network of the first start is trusted, containers and VPNs on the same machine are not', t => {
  const networks = [docker, home, tailscale];
  const trusts = firstTrusted(networks);
  t.deepEqual(trusts, [trustOf(home)]);
  t.is(judgeAddress('192.168.1.77', networks, trusts).kind, 'trusted');
  t.like(judgeAddress('172.17.0.9', networks, trusts), {kind: 'untrusted', network: 'docker0'});
});

test('another place with the same subnet and router address is another network, as its router has other hardware', t => {
  const trusts = firstTrusted([home]);
  const cafe = {...home, gatewayHardware: '02:ff:ff:ff:ff:ff'};
  t.false(isTrustedNetwork(cafe, trusts));
  t.false(isTrustedNetwork({...home, gatewayHardware: undefined}, trusts));
  t.false(isTrustedNetwork({...home, gateway: undefined}, trusts));
  t.like(judgeAddress('192.168.1.77', [cafe], trusts), {kind: 'untrusted', network: 'eth0'});
});

test('R61: a switch without any router is a network of its own', t => {
  const cable = network('eth0', '10.77.1.0/24', {gateway: undefined, gatewayHardware: undefined});
  const trusts = firstTrusted([cable]);
  t.is(judgeAddress('10.77.1.9', [cable], trusts).kind, 'trusted');
  t.is(judgeAddress('10.77.2.9', [cable], trusts).kind, 'untrusted');
});

test('loopback and this machine itself are always trusted, public addresses never', t => {
  t.is(judgeAddress('127.0.0.1', [], []).kind, 'trusted');
  t.is(judgeAddress('::1', [], []).kind, 'trusted');
  t.is(judgeAddress('::ffff:192.168.1.2', [home], []).kind, 'trusted');
  t.like(judgeAddress('8.8.8.8', [home], [{kind: 'subnet', subnet: '0.0.0.0/0'}]), {network: undefined});
});

test('an overlay is trusted by its name, and a routed subnet by its range', t => {
  const networks = [home, tailscale];
  t.like(judgeAddress('100.99.1.1', networks, []), {kind: 'untrusted', network: '100.99.1.1/32'});
  t.is(judgeAddress('100.99.1.1', networks, [{kind: 'subnet', subnet: '100.64.0.0/10'}]).kind, 'trusted');
  const wide = {...tailscale, subnets: ['100.64.0.0/10']};
  t.is(judgeAddress('100.99.1.1', [wide], [trustOf(wide)]).kind, 'trusted');
});

test('R48: a link-local address counts for its own interface, and without one only when all are trusted', t => {
  const trusts = [trustOf(home)];
  t.is(judgeAddress('fe80::1%eth0', [home, docker], trusts).kind, 'trusted');
  t.is(judgeAddress('fe80::1%docker0', [home, docker], trusts).kind, 'untrusted');
  t.is(judgeAddress('fe80::1', [home, docker], trusts).kind, 'untrusted');
  t.is(judgeAddress('fe80::1', [home], trusts).kind, 'trusted');
});

test('two interfaces with one subnet must both be trusted', t => {
  const twin = {...home, interface: 'wlan0', gatewayHardware: '02:aa'};
  t.is(judgeAddress('192.168.1.77', [home, twin], [trustOf(home)]).kind, 'untrusted');
});
