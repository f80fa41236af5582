import {readFileSync} from 'node:fs';
import {
  decodeExchange,
  decodeInventory,
  decodeOffer,
  decodeOfferAnswer,
  decodeRecord,
  decodeSignedRecord,
} from '@hearsay/core';
import {
  encodeBeat,
  encodeExchange,
  encodeInventory,
  encodeLeave,
  encodeOffer,
  encodeOfferAnswer,
  encodeSketch,
} from '@hearsay/core';
import {automatic, encodeSignedRecord} from '@hearsay/core';
import {decodeMembersAnswer, decodeMembersQuestion, decodeStatement} from '@hearsay/core';
import {encodeMembersAnswer, encodeMembersQuestion, encodeStatement} from '@hearsay/core';
import test from 'ava';
import {beat, digest, engineBeat, learned, model, node} from './support/builders.ts';

const document = readFileSync(new URL('../docs/protocol.md', import.meta.url), 'utf8');

/** The bytes printed under that name in docs/protocol.md. */
function golden(name: string): Uint8Array {
  const hex = new RegExp(`\`\`\`golden ${name}\\n([0-9a-f\\n]+)\`\`\``, 'u').exec(document)?.[1];
  if (hex === undefined) throw new Error(`docs/protocol.md has no golden bytes for ${name}`);
  return Uint8Array.from(Buffer.from(hex.replaceAll('\n', ''), 'hex'));
}

const signature = new Uint8Array(64).fill(7);
const signed = (payload: Uint8Array) => ({node: node('A'), payload, signature});
const leave = {kind: 'leave', node: node('A'), boot: 1, sequence: 43} as const;
const sketch = {
  kind: 'sketch',
  node: node('A'),
  boot: 1,
  sequence: 2,
  prompts: new Map([[digest('a'), new Set([1, 0xffff_ffff])]]),
} as const;
const printed = beat('A', {name: 'spark', sequence: 42, engines: [engineBeat('a')]});

test('the golden bytes of the protocol document decode to what it describes', t => {
  t.deepEqual(decodeRecord(signed(golden('beat'))), printed);
  t.deepEqual(decodeRecord(signed(golden('leave'))), leave);
  t.deepEqual(decodeRecord(signed(golden('sketch'))), sketch);
  t.deepEqual(decodeSignedRecord(golden('record')), signed(golden('leave')));
  t.deepEqual(decodeInventory(golden('inventory')), {models: [model('tiny', 'a')]});
  t.deepEqual(decodeInventory(golden('measured')), {models: [model('tiny', 'a', {learned: learned()})]});
  t.like(decodeOffer(golden('offer')), {
    request: '0123456789abcdef01234567',
    attempt: 1,
    hop: 1,
    digests: [digest('a')],
    policy: automatic,
    bodyBytes: 1234,
  });
  t.deepEqual(decodeOfferAnswer(golden('accept')), {kind: 'accepted', digest: digest('a'), loadSeq: 7});
  t.like(decodeOfferAnswer(golden('busy')), {kind: 'busy', reason: 'slots', retryAfterMs: 1500});
  t.deepEqual(decodeOfferAnswer(golden('refuse')), {kind: 'refused', code: 'hop', message: 'hop 2 is not 1'});
  t.like(decodeExchange(golden('exchange')), {mesh: 'home', name: 'spark'});
});

test('this version still writes exactly those bytes', t => {
  const same = (name: string, bytes: Uint8Array): boolean => t.deepEqual(Uint8Array.from(bytes), golden(name), name);
  same('beat', encodeBeat(printed));
  same('leave', encodeLeave(leave));
  same('sketch', encodeSketch(sketch));
  same('record', encodeSignedRecord(signed(encodeLeave(leave))));
  same('inventory', encodeInventory({models: [model('tiny', 'a')]}));
  same('measured', encodeInventory({models: [model('tiny', 'a', {learned: learned()})]}));
  same('offer', encodeOffer(decodeOffer(golden('offer'))));
  same('accept', encodeOfferAnswer(decodeOfferAnswer(golden('accept'))));
  same('busy', encodeOfferAnswer(decodeOfferAnswer(golden('busy'))));
  same('refuse', encodeOfferAnswer(decodeOfferAnswer(golden('refuse'))));
  same('exchange', encodeExchange(decodeExchange(golden('exchange'))));
});

const mesh = node('F');
const pass = {
  kind: 'pass',
  mesh,
  node: node('A'),
  name: 'spark',
  role: 'keeper',
  expiresAtMs: 1_800_000_000_000,
} as const;
const revocation = {kind: 'revocation', mesh, node: node('A'), name: 'spark'} as const;
const passes = [{signer: mesh, payload: golden('pass'), signature}];
const revoked = [{statement: {signer: mesh, payload: golden('revocation'), signature}, chain: []}];

test('the golden bytes on membership decode to what the document describes, and are still written so', t => {
  t.deepEqual(decodeStatement(golden('pass')), pass);
  t.deepEqual(decodeStatement(golden('revocation')), revocation);
  t.deepEqual(decodeMembersQuestion(golden('join')), {kind: 'join', secret: new Uint8Array(16).fill(9), name: 'spark'});
  t.deepEqual(decodeMembersQuestion(golden('renew')), {kind: 'renew'});
  t.deepEqual(decodeMembersQuestion(golden('revoke')), {kind: 'revoke', revocations: revoked});
  t.like(decodeMembersAnswer(golden('welcome')), {kind: 'welcome', mesh, meshName: 'home', chain: passes});
  t.deepEqual(decodeMembersAnswer(golden('no')), {kind: 'no', reason: 'used'});
  t.like(decodeExchange(golden('member-exchange')), {member: {mesh, chain: passes}, relay: true, refusal: 'closed'});
  const same = (name: string, bytes: Uint8Array): boolean => t.deepEqual(Uint8Array.from(bytes), golden(name), name);
  same('pass', encodeStatement(pass));
  same('revocation', encodeStatement(revocation));
  for (const name of ['join', 'renew', 'revoke'])
    same(name, encodeMembersQuestion(decodeMembersQuestion(golden(name))));
  for (const name of ['welcome', 'no']) same(name, encodeMembersAnswer(decodeMembersAnswer(golden(name))));
  const meshSecret = new Uint8Array(32).fill(7);
  t.deepEqual(decodeMembersAnswer(golden('welcome-secret')), {...decodeMembersAnswer(golden('welcome')), meshSecret});
  same('welcome-secret', encodeMembersAnswer(decodeMembersAnswer(golden('welcome-secret'))));
  same('member-exchange', encodeExchange(decodeExchange(golden('member-exchange'))));
});
