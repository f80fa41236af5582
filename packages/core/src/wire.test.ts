import test from 'ava';
import {encode} from 'cborg';
import fc from 'fast-check';
import {beat, digest, engineBeat, learned, model, node} from '../../../test/support/builders.ts';
import {decodeExchange, encodeExchange} from './exchange-codec.ts';
import {Fault} from './fault.ts';
import {isRequestId, toDigest} from './ids.ts';
import type {RequestId} from './ids.ts';
import {beatBytesMax, inventoryBytesMax, recordBytesMax} from './limits.ts';
import {decodeInventory, encodeInventory} from './inventory-codec.ts';
import {decodeRecord, encodeBeat, encodeLeave, encodeSketch, isRecordFromNewer} from './record-codec.ts';
import type {SignedRecord} from './record.ts';
import {decodeOffer, decodeOfferAnswer, decodeSignedRecord} from './wire.ts';
import {encodeOffer, encodeOfferAnswer, encodeSignedRecord, isFromNewer} from './wire.ts';
import type {WorkRequest} from './work.ts';

function requestId(text: string): RequestId {
  if (!isRequestId(text)) throw new Error('bad id in a test');
  return text;
}

const signed = (payload: Uint8Array): SignedRecord => ({node: node('A'), payload, signature: new Uint8Array(64)});

const work: WorkRequest = {
  request: requestId('0123456789abcdef01234567'),
  attempt: 2,
  hop: 1,
  digests: [digest('a'), digest('b')],
  endpoint: '/v1/chat/completions',
  needs: ['chat', 'tools'],
  policy: {placement: {kind: 'prefer', nodes: ['spark']}, exclude: ['mini'], localRequired: true},
  deadlineMs: 60_000,
  bodyBytes: 1234,
  waitEstimateMs: 50,
  force: false,
  traceparent: undefined,
  contextTokens: 8192,
};

test('R106: more context than there are numbers for is no mistake of the node that passes the wish on', t => {
  for (const contextTokens of [2 ** 60, 1e300]) {
    const passedOn = decodeOffer(encodeOffer({...work, contextTokens}));
    t.is(passedOn.contextTokens, Number.MAX_SAFE_INTEGER);
  }
});

test('records, offers, answers, inventories and exchanges come back as they were', t => {
  const full = beat('A', {engines: [engineBeat('a'), engineBeat('b', {readiness: 'loading', untilSeconds: -1})]});
  t.deepEqual(decodeRecord(signed(encodeBeat(full))), full);
  const leave = {kind: 'leave', node: node('A'), boot: 3, sequence: 9} as const;
  t.deepEqual(decodeRecord(signed(encodeLeave(leave))), leave);
  const record = signed(Uint8Array.from(encodeBeat(full)));
  t.deepEqual(decodeSignedRecord(encodeSignedRecord(record)), record);
  t.deepEqual(decodeOffer(encodeOffer(work)), work);
  for (const answer of [
    {kind: 'accepted', digest: digest('c'), loadSeq: 12} as const,
    {kind: 'accepted', digest: digest('c')} as const,
    {kind: 'busy', reason: 'slots', record: undefined, retryAfterMs: 1500} as const,
    {kind: 'refused', code: 'hop', message: 'hop 2 is not 1'} as const,
  ]) {
    t.deepEqual(decodeOfferAnswer(encodeOfferAnswer(answer)), answer);
  }
  const inventory = {models: [model('m', 'a'), model('n', 'b', {demo: true})]};
  t.deepEqual(decodeInventory(encodeInventory(inventory)), inventory);
  const statement = {signer: node('C'), payload: Uint8Array.from([1]), signature: new Uint8Array(64)};
  const message = {
    mesh: 'home',
    name: 'spark',
    records: [{record, ageMs: 12}],
    addresses: [{node: node('B'), addresses: ['/ip4/10.0.0.2/tcp/4328']}],
    member: {mesh: node('C'), chain: [statement]},
    revocations: [{statement, chain: []}],
    relay: true,
    refusal: 'closed' as const,
  };
  t.deepEqual(decodeExchange(encodeExchange(message)), message);
});

test('a beat with four engines fits its budget', t => {
  const engines = ['a', 'b', 'c', 'd'].map(letter =>
    engineBeat(letter, {sizeBytes: 40e9, context: 131_072, waitMs: 60_000}),
  );
  const long = beat('A', {
    name: 'workstation-upstairs',
    engines,
    memory: {kind: 'device', totalBytes: 128e9, freeBytes: 64e9},
  });
  t.true(encodeBeat(long).length <= beatBytesMax, `${encodeBeat(long).length} bytes`);
});

test('a beat tells of battery and heat while there is something to tell', t => {
  const flagsOf = (flags: Parameters<typeof beat>[1]): unknown => {
    const record = decodeRecord(signed(encodeBeat(beat('A', flags))));
    return record.kind === 'beat' ? record.flags : undefined;
  };
  const plain = {draining: false, paused: true};
  t.deepEqual(flagsOf({flags: plain}), plain);
  const tired = {draining: false, paused: false, batteryShare: 0.37, isHot: true};
  t.deepEqual(flagsOf({flags: tired}), tired);
});

test('the fullest sketch fits a record, and keeps the newest hashes', t => {
  const hashes = new Set(Array.from({length: 1000}, (_, index) => 4_000_000_000 + index));
  const prompts = new Map(['a', 'b', 'c'].map(letter => [digest(letter), hashes]));
  const payload = encodeSketch({kind: 'sketch', node: node('A'), boot: 1, sequence: 1, prompts});
  const envelope = {node: node('A'), payload, signature: new Uint8Array(64)};
  t.true(encodeSignedRecord(envelope).length <= recordBytesMax);
  const back = decodeRecord(envelope);
  const held = back.kind === 'sketch' ? back.prompts.get(digest('a')) : undefined;
  t.true(held?.has(4_000_000_999));
  t.false(held?.has(4_000_000_000));
});

test('unknown keys and further elements of a newer version are ignored', t => {
  const newer = new Uint8Array([
    0xa5,
    ...encodeLeave({kind: 'leave', node: node('A'), boot: 1, sequence: 2}).slice(1),
    0x61,
    0x7a,
    0x01,
  ]);
  t.like(decodeRecord(signed(newer)), {kind: 'leave', sequence: 2});
});

test('an inventory carries what its node has measured and what it guesses of its machine', t => {
  const hardware = {memoryBytesPerSecond: 80e9, operationsPerSecond: 4e12, diskBytesPerSecond: 1e9};
  const facts = learned({decodeTps: 12.34, loadMs: undefined});
  const inventory = {models: [model('m', 'a', {learned: facts}), model('n', 'b')], contextMax: 4096, hardware};
  t.deepEqual(decodeInventory(encodeInventory(inventory)), inventory);
});

test('inventories never tell of a model that is still unproven, and equal ones have equal bytes', t => {
  const proven = [model('m', 'a'), model('n', 'b')];
  const unproven = model('o', 'c', {digest: toDigest('unproven:1234')});
  t.deepEqual(encodeInventory({models: proven}), encodeInventory({models: [unproven, ...proven.toReversed()]}));
});

test('an inventory that is too large tells of as many models as peers take, and how many it leaves out', t => {
  const names = ['ü'.repeat(200)] as const;
  const models = Array.from({length: 3000}, (_, index) =>
    model('m', 'a', {digest: toDigest(`sha256:${String(index).padStart(64, '0')}`), names}),
  );
  let missing = 0;
  const bytes = encodeInventory({models}, count => (missing = count));
  const told = decodeInventory(bytes).models.length;
  t.true(told > 400 && bytes.length <= inventoryBytesMax);
  t.is(told + missing, 3000);
});

test('a model with an odd header does not keep peers from the others', t => {
  const odd = model('odd', 'b', {
    names: ['', 'x'.repeat(300)],
    architecture: 'y'.repeat(200),
    quant: 'z'.repeat(200),
    needBytes: 1e30,
    contextMax: 10.5,
    parameters: -1,
  });
  const [first, second] = decodeInventory(encodeInventory({models: [model('m', 'a'), odd]})).models;
  t.deepEqual(first, model('m', 'a'));
  t.like(second, {names: ['x'.repeat(200)], architecture: 'y'.repeat(64), contextMax: 11, parameters: 0});
});

const decoders = [decodeSignedRecord, decodeOffer, decodeOfferAnswer, decodeInventory, decodeExchange];

test('what a newer version may have sent is told from what cannot be used', t => {
  const record = Uint8Array.from(
    encodeSignedRecord(signed(encodeLeave({kind: 'leave', node: node('A'), boot: 1, sequence: 2}))),
  );
  t.false(isFromNewer(record));
  t.true(isFromNewer(record.with(1, 2)), 'an array begins with its length, and this one with the version');
  const payload = (k: string, v: number): SignedRecord => signed(Uint8Array.from(encode({k, v})));
  t.true(isRecordFromNewer(payload('beat', 2)));
  t.true(isRecordFromNewer(payload('weather', 1)));
  t.false(isRecordFromNewer(payload('beat', 1)), 'a beat of this version that lacks everything is junk');
  t.false(isRecordFromNewer(signed(new Uint8Array([1, 2, 3]))));
  fc.assert(fc.property(fc.uint8Array({maxLength: 200}), data => typeof isFromNewer(data) === 'boolean'));
});

test('S18: any bytes give a fault and nothing else', t => {
  fc.assert(
    fc.property(fc.uint8Array({maxLength: 300}), bytes => {
      for (const decode of [...decoders, (data: Uint8Array) => decodeRecord(signed(data))]) {
        try {
          decode(bytes);
        } catch (error) {
          t.true(error instanceof Fault, String(error));
        }
      }
    }),
  );
});

test('valid messages with single bytes changed give a fault or a value, never another error', t => {
  const samples = [
    encodeOffer(work),
    encodeSignedRecord(signed(encodeBeat(beat('A')))),
    encodeInventory({models: [model('m', 'a')]}),
  ];
  fc.assert(
    fc.property(fc.constantFrom(...samples), fc.nat(), fc.integer({min: 0, max: 255}), (sample, at, value) => {
      const changed = Uint8Array.from(sample);
      changed[at % changed.length] = value;
      for (const decode of decoders) {
        try {
          decode(changed);
        } catch (error) {
          t.true(error instanceof Fault, String(error));
        }
      }
    }),
  );
});

test('nesting to the limit of the size is refused, not a crash', t => {
  t.throws(() => decodeExchange(new Uint8Array(500_000).fill(0x81)), {instanceOf: Fault});
});
