import {multiaddr} from '@multiformats/multiaddr';
import test from 'ava';
import {Fault} from '@hearsay/core';
import {
  formatHostPort,
  hostPortOf,
  parsePeer,
  relayOf,
  tcpMultiaddr,
  withoutLoopback,
  withoutNode,
} from './addresses.ts';

for (const [written, expected] of [
  ['spark', 'spark:4328'],
  ['spark:4400', 'spark:4400'],
  ['spark:', 'spark:4328'],
  ['  10.0.0.5 ', '10.0.0.5:4328'],
  ['10.0.0.5:1', '10.0.0.5:1'],
  ['[::1]:9000', '[::1]:9000'],
  ['[fd00::7]', '[fd00::7]:4328'],
  ['fd00::7', '[fd00::7]:4328'],
] as const) {
  test(`R63: the peer "${written}" is dialled at ${expected}`, t => {
    const peer = parsePeer(written, 4328);
    t.is(peer?.kind === 'host' ? formatHostPort(peer) : undefined, expected);
  });
}

for (const written of [
  'http://10.0.0.5',
  'a b',
  'spark:99999',
  'spark:0',
  'spark:x',
  '[spark]:1',
  '/ip4/300.1.1.1/tcp/1',
  ':1',
  '/ip4/10.0.0.5/udp/4328/quic-v1',
  '/ip4/10.0.0.5',
]) {
  test(`R63: "${written}" is no peer, and the message says how to write one`, t => {
    const error = t.throws(() => parsePeer(written, 4328), {instanceOf: Fault});
    t.is(error.code, 'BAD_CONFIG');
    t.true(error.message.includes(written));
    t.regex(error.message, /host:port/u);
  });
}

test('R48: a link-local address is read with its interface in both forms, and any other form names them', t => {
  const bracketed = parsePeer('[fe80::7%eth0]:4400', 4328);
  t.is(bracketed?.kind === 'host' ? tcpMultiaddr(bracketed).toString() : '', '/ip6zone/eth0/ip6/fe80::7/tcp/4400');
  const written = parsePeer('/ip6zone/eth0/ip6/fe80::7/tcp/4400', 4328);
  t.deepEqual(written?.kind === 'multiaddr' ? hostPortOf(written.address) : {}, {host: 'fe80::7%eth0', port: 4400});
  const error = t.throws(() => parsePeer('/ip6/fe80::7%eth0/tcp/4400', 4328), {instanceOf: Fault});
  t.is(error.code, 'BAD_CONFIG');
  t.true(error.message.includes('[fe80::1%eth0]:4328'));
});

test('R63: an empty item names nobody, and a multiaddr stays what it is', t => {
  t.is(parsePeer('  ', 4328), undefined);
  const peer = parsePeer('/ip4/10.0.0.5/tcp/4000', 4328);
  t.is(peer?.kind === 'multiaddr' ? peer.address.toString() : undefined, '/ip4/10.0.0.5/tcp/4000');
});

test('host and port survive the way through a multiaddr, and what is not TCP has none', t => {
  t.deepEqual(hostPortOf(tcpMultiaddr({host: 'fd00::7', port: 1})), {host: 'fd00::7', port: 1});
  t.deepEqual(hostPortOf(tcpMultiaddr({host: '10.0.0.5', port: 2})), {host: '10.0.0.5', port: 2});
  t.deepEqual(hostPortOf(tcpMultiaddr({host: 'fe80::7%eth0', port: 3})), {host: 'fe80::7%eth0', port: 3});
  t.is(hostPortOf(multiaddr('/ip4/10.0.0.5/udp/1')), undefined);
  const relay = '/ip4/10.0.0.5/tcp/1/p2p/12D3KooWQQ3ppkVzYfyLTnMTwizULhvAWB11nLezi6F7yic4wygS/p2p-circuit';
  t.is(hostPortOf(multiaddr(relay)), undefined);
  t.is(relayOf(multiaddr(relay)), '12D3KooWQQ3ppkVzYfyLTnMTwizULhvAWB11nLezi6F7yic4wygS');
  t.is(relayOf(multiaddr('/ip4/10.0.0.5/tcp/1')), undefined);
  t.is(withoutNode(multiaddr(relay)).toString(), relay);
});

test('loopback is announced only where there is nothing else', t => {
  const texts = (list: readonly string[]): string[] => withoutLoopback(list.map(text => multiaddr(text))).map(String);
  const [loop4, loop6, lan] = ['/ip4/127.0.0.1/tcp/1', '/ip6/::1/tcp/1', '/ip4/10.0.0.5/tcp/1'] as const;
  t.deepEqual(texts([loop4, lan, loop6]), [lan]);
  t.deepEqual(texts([loop4, loop6]), [loop4, loop6]);
});
