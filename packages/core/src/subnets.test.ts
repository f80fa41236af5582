import test from 'ava';
import fc from 'fast-check';
import {
  isInSubnet,
  isLinkLocal6,
  isLoopbackAddress,
  isPrivateAddress,
  isPrivateSubnet,
  normalSubnet,
} from './subnets.ts';

test('private ranges are exactly RFC 1918, shared, link-local and unique local addresses', t => {
  const inside = ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.9.9', '100.64.0.1', '169.254.1.1', 'fd00::1'];
  const outside = [
    '172.32.0.1',
    '100.128.0.1',
    '8.8.8.8',
    '2001:db8::1',
    '127.0.0.1',
    '::1',
    '192.169.0.1',
    'host',
    '',
  ];
  for (const address of [...inside, 'fe80::1%eth0', '::ffff:10.0.0.1']) t.true(isPrivateAddress(address), address);
  for (const address of outside) t.false(isPrivateAddress(address), address);
});

test('loopback and link-local addresses are known in every spelling', t => {
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1']) {
    t.true(isLoopbackAddress(address), address);
  }
  t.true(isLinkLocal6('fe80::1%eth0'));
  t.false(isLinkLocal6('fd00::1'));
});

test('an address of one family is in no subnet of the other', t => {
  t.true(isInSubnet('192.168.1.77', '192.168.1.1/24'));
  t.false(isInSubnet('192.168.2.77', '192.168.1.0/24'));
  t.false(isInSubnet('::1', '0.0.0.0/0'));
  t.true(isInSubnet('fd00:1::9', 'fd00:1::/64'));
});

test('a subnet is private only when all of its addresses are', t => {
  for (const subnet of ['10.0.0.0/8', '10.1.2.3/32', '192.168.0.0/16', '100.64.1.0/24', 'fd00::/8', 'fe80::1/128']) {
    t.true(isPrivateSubnet(subnet), subnet);
  }
  for (const subnet of [
    '0.0.0.0/0',
    '10.0.0.0/7',
    '8.8.8.0/24',
    '192.168.0.0/15',
    '::/0',
    'fc00::/6',
    '2001:db8::/32',
    '',
  ]) {
    t.false(isPrivateSubnet(subnet), subnet);
  }
});

test('a subnet is written in one way only, and what is none is told apart', t => {
  t.is(normalSubnet('192.168.1.7/24'), '192.168.1.0/24');
  t.is(normalSubnet('10.0.0.5'), '10.0.0.5/32');
  t.is(normalSubnet('fd00:0:0:1::5/64'), 'fd00:0:0:1::/64');
  t.is(normalSubnet('::/0'), '::/0');
  t.is(normalSubnet('fe80::1'), 'fe80::1/128');
  for (const text of ['eth0', '1.2.3/24', '1.2.3.4/33', '1.2.3.4/', ':::/3', 'fd00::1::2/64', '256.0.0.1/8']) {
    t.is(normalSubnet(text), undefined, text);
  }
});

test('every address is in its own subnet of any length, also after that was written anew', t => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(128), (address, prefix) => {
      const subnet = normalSubnet(`${address}/${prefix}`);
      return subnet === undefined ? prefix > 32 : isInSubnet(address, subnet) && normalSubnet(subnet) === subnet;
    }),
  );
  t.pass();
});

test('any text is an answer and never an exception', t => {
  fc.assert(fc.property(fc.string(), fc.string(), (a, b) => typeof isInSubnet(a, b) === 'boolean'));
  t.pass();
});
