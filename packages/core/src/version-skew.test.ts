import {readFileSync} from 'node:fs';
import test from 'ava';
import {decode, encode} from 'cborg';
import {z} from 'zod';
import {node} from '../../../test/support/builders.ts';
import {decodeControl, decodeControlAnswer} from './control.ts';
import {decodeExchange, encodeExchange} from './exchange-codec.ts';
import {decodeInventory} from './inventory-codec.ts';
import {decodeMembersAnswer, decodeMembersQuestion, decodeStatement} from './membership-codec.ts';
import {decodeRecord, encodeLeave} from './record-codec.ts';
import {decodeOffer, decodeOfferAnswer, decodeSignedRecord, encodeSignedRecord} from './wire.ts';

/**
 * What version 0.1.0 wrote, message by message. docs/protocol.md follows the present version; this file stays as it is,
 * and the next version gets one of its own.
 */
const written: Readonly<Record<string, string>> = z
  .record(z.string(), z.string())
  .parse(JSON.parse(readFileSync(new URL('../../../test/fixtures/golden-0.1.0.json', import.meta.url), 'utf8')));

type Decoder = (data: Uint8Array) => unknown;

const record: Decoder = payload => decodeRecord({node: node('A'), payload, signature: new Uint8Array(64)});

/** Each message of 0.1.0, what reads it, and what must be found in it. */
const messages: readonly (readonly [string, Decoder, object])[] = [
  ['beat', record, {kind: 'beat', name: 'spark', sequence: 42}],
  ['leave', record, {kind: 'leave', sequence: 43}],
  ['sketch', record, {kind: 'sketch', sequence: 2}],
  ['record', decodeSignedRecord, {node: node('A')}],
  ['inventory', decodeInventory, {models: {length: 1}}],
  ['measured', decodeInventory, {models: {length: 1}}],
  ['offer', decodeOffer, {attempt: 1, hop: 1, bodyBytes: 1234}],
  ['accept', decodeOfferAnswer, {kind: 'accepted'}],
  ['busy', decodeOfferAnswer, {kind: 'busy', reason: 'slots', retryAfterMs: 1500}],
  ['refuse', decodeOfferAnswer, {kind: 'refused', code: 'hop'}],
  ['control load', decodeControl, {kind: 'load', context: 4096, slots: 2}],
  ['control logs', decodeControl, {kind: 'logs', after: 7}],
  ['control answer engine', decodeControlAnswer, {kind: 'engine'}],
  ['control answer logs', decodeControlAnswer, {kind: 'logs'}],
  ['exchange', decodeExchange, {mesh: 'home', name: 'spark'}],
  ['pass', decodeStatement, {kind: 'pass', role: 'keeper'}],
  ['revocation', decodeStatement, {kind: 'revocation', name: 'spark'}],
  ['join', decodeMembersQuestion, {kind: 'join', name: 'spark'}],
  ['renew', decodeMembersQuestion, {kind: 'renew'}],
  ['revoke', decodeMembersQuestion, {kind: 'revoke'}],
  ['adopt', decodeMembersQuestion, {kind: 'adopt'}],
  ['done', decodeMembersAnswer, {kind: 'done'}],
  ['welcome', decodeMembersAnswer, {kind: 'welcome', meshName: 'home'}],
  ['no', decodeMembersAnswer, {kind: 'no', reason: 'used'}],
  ['member-exchange', decodeExchange, {relay: true, refusal: 'closed'}],
];

function bytesOf(name: string): Uint8Array {
  return Uint8Array.from(Buffer.from(written[name] ?? '', 'hex'));
}

/** The same message as a newer version might write it: with a further key, or a further element, at its top. */
function extended(data: Uint8Array): Uint8Array {
  const message: unknown = decode(data);
  if (Array.isArray(message)) return Uint8Array.from(encode([...message, {new: 1}, 'more']));
  return Uint8Array.from(encode({...z.record(z.string(), z.unknown()).parse(message), zz: {new: [1]}, yy: 'more'}));
}

test('every message that version 0.1.0 wrote is still read, and means the same', t => {
  t.deepEqual(messages.map(([name]) => name).toSorted(), Object.keys(written).toSorted());
  for (const [name, read, expected] of messages) t.like(read(bytesOf(name)), expected, name);
});

test('fields that this version does not know change nothing of what it reads in any message', t => {
  for (const [name, read] of messages) t.deepEqual(read(extended(bytesOf(name))), read(bytesOf(name)), name);
});

test('what an older node passes on still holds the fields that it does not know', t => {
  const payload = extended(Uint8Array.from(encodeLeave({kind: 'leave', node: node('A'), boot: 1, sequence: 2})));
  const signed = {node: node('A'), payload, signature: new Uint8Array(64).fill(7)};
  t.deepEqual(decodeSignedRecord(encodeSignedRecord(signed)), signed);
  const exchange = {mesh: 'home', name: 'spark', records: [{record: signed, ageMs: 5}], addresses: []};
  const [passed] = decodeExchange(encodeExchange(exchange)).records;
  t.deepEqual(passed?.record, signed);
});
