import {mkdtemp, rm, truncate, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {Fault} from '@hearsay/core';
import test from 'ava';
import fc from 'fast-check';
import {counterContent, counterModel} from '../../../scripts/tiny-models/counter-model.ts';
import type {GgufContent, MetadataValue} from '../../../scripts/tiny-models/gguf-writer.ts';
import {encodeGguf, encodeGgufShards, text, texts, uint32} from '../../../scripts/tiny-models/gguf-writer.ts';
import {readGguf} from './read-gguf.ts';
import type {GgufHeader} from './read-gguf.ts';

const small = counterContent({name: 'Counter', count: 5});
const smallBytes = encodeGguf(small);
const headerBytes = smallBytes.length - small.tensors.reduce((sum, {bytes}) => sum + bytes.length, 0);

const folder = await mkdtemp(join(tmpdir(), 'hearsay-gguf-'));
test.after.always(async () => {
  await rm(folder, {recursive: true});
});

let files = 0;

async function write(bytes: Uint8Array): Promise<string> {
  const path = join(folder, `${files++}.gguf`);
  await writeFile(path, bytes);
  return path;
}

async function read(bytes: Uint8Array): Promise<GgufHeader> {
  const path = await write(bytes);
  try {
    return await readGguf(path);
  } finally {
    await rm(path);
  }
}

/** The fault that reading ends with; anything else that is thrown goes through. */
async function faultOf(bytes: Uint8Array): Promise<Fault | undefined> {
  try {
    await read(bytes);
    return undefined;
  } catch (error) {
    if (error instanceof Fault && error.code === 'BAD_FILE' && typeof error.details['reason'] === 'string')
      return error;
    throw error;
  }
}

function changed(at: number, bytes: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(smallBytes);
  copy.set(bytes.subarray(0, copy.length - at), at);
  return copy;
}

function withMetadata(key: string, value: MetadataValue): GgufContent {
  return {...small, metadata: new Map([...small.metadata, [key, value]])};
}

test('metadata, tensors and parameters are read as they were written', async t => {
  const header = await read(smallBytes);
  t.is(header.version, 3);
  t.is(header.metadata.get('general.name'), 'Counter');
  t.is(header.metadata.get('llama.context_length'), 2048);
  t.is(header.metadata.get('tokenizer.ggml.add_bos_token'), true);
  t.is(header.metadata.size, small.metadata.size);
  t.is(header.tensors.count, small.tensors.length);
  t.is(
    header.tensors.weightsBytes,
    small.tensors.reduce((sum, {bytes}) => sum + bytes.length, 0),
  );
  const weights = small.tensors.map(({shape}) => shape.reduce((product, length) => product * length, 1));
  t.is(
    header.tensors.parameters,
    weights.reduce((sum, count) => sum + count, 0),
  );
  t.true(header.hasInsertToken);
  t.false(header.tensors.hasClassifier);
});

test('of a vocabulary only the number of tokens is kept, of other texts the items', async t => {
  const {metadata} = await read(encodeGguf(withMetadata('general.languages', texts(['en', 'de']))));
  t.deepEqual(metadata.get('tokenizer.ggml.tokens'), {count: 384, items: undefined});
  t.deepEqual(metadata.get('general.languages'), {count: 2, items: ['en', 'de']});
});

test('a vocabulary much larger than the window is passed over', async t => {
  const tokens = Array.from({length: 200_000}, (_, index) => `token number ${index}`);
  const {metadata} = await read(encodeGguf(withMetadata('tokenizer.ggml.merges', texts(tokens))));
  t.deepEqual(metadata.get('tokenizer.ggml.merges'), {count: 200_000, items: undefined});
});

test('a chat template longer than the window arrives whole', async t => {
  const template = 'ä'.repeat(300_000);
  const {metadata} = await read(encodeGguf(withMetadata('tokenizer.chat_template', text(template))));
  t.is(metadata.get('tokenizer.chat_template'), template);
});

test('the size of a tensor of a type from the future is where the next one begins', async t => {
  const before = await read(smallBytes);
  const name = Buffer.from('output_norm.weight');
  const typeAt = Buffer.from(smallBytes).indexOf(name) + name.length + 4 + 8;
  const after = await read(changed(typeAt, uint32(77).bytes));
  t.is(after.tensors.weightsBytes, before.tensors.weightsBytes);
  t.is(after.tensors.bytesByType.get(77), 128 * 4);
});

const damages: readonly (readonly [string, Uint8Array, string, RegExp])[] = [
  ['an empty file', new Uint8Array(), 'not-gguf', /not a GGUF file/u],
  ['a text', Buffer.from('hello, this is no model'), 'not-gguf', /not a GGUF file/u],
  ['nothing but the first word', Buffer.from('GGUF'), 'incomplete', /ends within its header/u],
  ['a version of the past', changed(4, uint32(1).bytes), 'not-gguf', /version 1/u],
  ['the other byte order', changed(4, Uint8Array.of(0, 0, 0, 3)), 'not-gguf', /big-endian/u],
  ['more tensors than there can be', changed(8, new Uint8Array(8).fill(0x11)), 'damaged', /impossible length/u],
  ['a text longer than any', changed(24, Uint8Array.of(0, 0, 0, 0, 1)), 'damaged', /text of 4294967296 bytes/u],
  ['a value of a type that does not exist', changed(32 + 20, uint32(13).bytes), 'damaged', /unknown type 13/u],
  ['a list of lists', encodeGguf(withMetadata('a', {type: 9, bytes: uint32(9).bytes})), 'damaged', /header/u],
  ['an alignment of zero', encodeGguf(withMetadata('general.alignment', uint32(0))), 'damaged', /alignment/u],
  ['half of the weights', smallBytes.subarray(0, smallBytes.length / 2), 'incomplete', /are missing at its end/u],
];

for (const [what, bytes, reason, message] of damages) {
  test(`${what} is refused with a reason`, async t => {
    const fault = await faultOf(bytes);
    t.is(fault?.details['reason'], reason);
    t.regex(fault?.message ?? '', message);
  });
}

test('a file cut off anywhere is refused, also in the middle of a number', async t => {
  const ends = fc.oneof(fc.integer({min: 0, max: headerBytes}), fc.integer({min: 0, max: smallBytes.length - 1}));
  await fc.assert(
    fc.asyncProperty(ends, async end => (await faultOf(smallBytes.subarray(0, end))) !== undefined),
    {numRuns: 300},
  );
  t.pass();
});

test('whatever bytes are changed, the header is read or refused, never anything else', async t => {
  const change = fc.tuple(fc.nat({max: headerBytes - 1}), fc.uint8Array({minLength: 1, maxLength: 12}));
  await fc.assert(
    fc.asyncProperty(fc.array(change, {minLength: 1, maxLength: 4}), async changes => {
      const bytes = Uint8Array.from(smallBytes);
      for (const [at, replacement] of changes) bytes.set(replacement, at);
      await faultOf(bytes);
    }),
    {numRuns: 500},
  );
  t.pass();
});

test('random bytes after the first word are refused', async t => {
  const garbage = fc.uint8Array({maxLength: 2000});
  await fc.assert(
    fc.asyncProperty(garbage, async bytes => {
      const start = Buffer.from('GGUF\u0003\0\0\0', 'latin1');
      const fault = await faultOf(Buffer.concat([start, bytes]));
      const isEmptyHeader = bytes.length >= 16 && bytes.subarray(0, 16).every(byte => byte === 0);
      return fault !== undefined || isEmptyHeader;
    }),
    {numRuns: 300},
  );
  t.pass();
});

test('weights cut off tell how many bytes are missing', async t => {
  const path = await write(smallBytes);
  await truncate(path, smallBytes.length - 1000);
  const fault = await t.throwsAsync(readGguf(path), {instanceOf: Fault, code: 'BAD_FILE'});
  t.like(fault?.details, {reason: 'incomplete', missingBytes: 1000, path});
});

test('R73: the last shard says which one it is and counts only its own weights', async t => {
  const [first, second] = await Promise.all(encodeGgufShards(small, 12).map(read));
  t.is(second?.metadata.get('split.no'), 1);
  t.is(second?.metadata.get('split.count'), 2);
  const whole = await read(smallBytes);
  t.is((first?.tensors.weightsBytes ?? 0) + (second?.tensors.weightsBytes ?? 0), whole.tensors.weightsBytes);
});

test('a file that is not there and a folder are faults, too', async t => {
  const missing = await t.throwsAsync(readGguf(join(folder, 'none.gguf')), {instanceOf: Fault, code: 'BAD_FILE'});
  t.is(missing?.details['reason'], 'unreadable');
  await t.throwsAsync(readGguf(folder), {instanceOf: Fault, code: 'BAD_FILE'});
});

test('an abort ends reading with the reason of its signal', async t => {
  const path = await write(counterModel({name: 'Counter'}));
  await t.throwsAsync(readGguf(path, AbortSignal.abort(new Error('enough'))), {message: 'enough'});
});
