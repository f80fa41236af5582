import {generateKeyPair} from '@libp2p/crypto/keys';
import {peerIdFromPrivateKey} from '@libp2p/peer-id';
import test from 'ava';
import type {SignedRecord} from '@hearsay/core';
import {isSigned, nodeIdOf, signRecord} from './identity.ts';
import {VerifiedRecords} from './verified-records.ts';

async function signed(words: string): Promise<SignedRecord> {
  const key = await generateKeyPair('Ed25519');
  return signRecord(key, nodeIdOf(peerIdFromPrivateKey(key)), new TextEncoder().encode(words));
}

/** As it comes in another message. */
function again({node, payload, signature}: SignedRecord): SignedRecord {
  return {node, payload: payload.slice(), signature: signature.slice()};
}

test('a record that every peer tells is verified once', async t => {
  let verified = 0;
  const records = new VerifiedRecords(record => {
    verified += 1;
    return isSigned(record);
  });
  const told = await Promise.all(['a', 'b', 'c'].map(signed));
  for (let peer = 0; peer < 10; peer += 1) for (const record of told) t.true(records.isSigned(again(record)));
  t.is(verified, told.length);
});

test('as many records of a node as it is told to keep are verified once, in whatever order they are told', async t => {
  const key = await generateKeyPair('Ed25519');
  const node = nodeIdOf(peerIdFromPrivateKey(key));
  const [first, second, third] = [1, 2, 3].map(count => signRecord(key, node, Uint8Array.of(count)));
  if (!first || !second || !third) return t.fail();
  const verified: SignedRecord[] = [];
  const records = new VerifiedRecords(record => verified.push(record) > 0, 2);
  for (const record of [first, second, first, second, third, second, first]) t.true(records.isSigned(again(record)));
  t.deepEqual(verified, [first, second, third, first]);
});

test('what differs in anything from what was verified is verified itself, and refused when it is forged', async t => {
  const records = new VerifiedRecords();
  const [record, other] = [await signed('a'), await signed('a')];
  t.true(records.isSigned(record));
  t.false(records.isSigned({...record, payload: new TextEncoder().encode('b')}));
  t.false(records.isSigned({...record, signature: other.signature}));
  t.false(records.isSigned({...record, node: other.node}));
  t.true(records.isSigned(record));
});
