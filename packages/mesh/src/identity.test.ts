import {chmod, mkdtemp, readFile, rm, stat, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {generateKeyPair, privateKeyToProtobuf} from '@libp2p/crypto/keys';
import {peerIdFromPrivateKey} from '@libp2p/peer-id';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault} from '@hearsay/core';
import {isSigned, loadIdentity, nodeIdOf, signRecord} from './identity.ts';

async function keyFile(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-identity-'));
  t.teardown(async () => rm(folder, {recursive: true}));
  return join(folder, 'made', 'when', 'missing', 'node.key');
}

test('a key is made once, in a folder made for it, and only its owner can read it', async t => {
  const file = await keyFile(t);
  const first = await loadIdentity(file);
  const again = await loadIdentity(file);
  t.true(first.equals(again));
  t.is((await stat(file)).mode & 0o777, 0o600);
});

test('two starts at once agree on one key', async t => {
  const file = await keyFile(t);
  await loadIdentity(file);
  await rm(file);
  const keys = await Promise.all(Array.from({length: 4}, async () => loadIdentity(file)));
  const kept = await loadIdentity(file);
  t.true(keys.every(key => key.equals(kept)));
});

for (const [what, bytes] of [
  ['damaged', async () => new TextEncoder().encode('not a key')],
  ['empty', async () => new Uint8Array()],
  ['of another kind', async () => privateKeyToProtobuf(await generateKeyPair('secp256k1'))],
] as const) {
  test(`a key file that is ${what} is a fault that says what to do, and stays as it is`, async t => {
    const file = await keyFile(t);
    await loadIdentity(file);
    const written = await bytes();
    await writeFile(file, written);
    const error = await t.throwsAsync(loadIdentity(file), {instanceOf: Fault});
    t.is(error.code, 'BAD_CONFIG');
    t.true(error.message.includes(file));
    t.regex(error.message, /restore it from a backup, or delete it/u);
    t.deepEqual(new Uint8Array(await readFile(file)), new Uint8Array(written));
  });
}

test('a folder that cannot be written is a fault that names the file', async t => {
  const file = await keyFile(t);
  await loadIdentity(file);
  const error = await t.throwsAsync(loadIdentity(join(file, 'below-a-file')), {instanceOf: Fault});
  t.is(error.code, 'BAD_CONFIG');
  await chmod(file, 0o600);
});

test('a signature holds for its payload and its node, and for nothing else', async t => {
  const key = await generateKeyPair('Ed25519');
  const other = nodeIdOf(peerIdFromPrivateKey(await generateKeyPair('Ed25519')));
  const node = nodeIdOf(peerIdFromPrivateKey(key));
  const payload = new TextEncoder().encode('payload');
  const record = signRecord(key, node, payload);
  t.true(isSigned(record));
  t.false(isSigned({...record, node: other}));
  t.false(isSigned({...record, payload: new TextEncoder().encode('Payload')}));
  t.false(isSigned({...record, signature: record.signature.slice(1)}));
  t.false(isSigned({...record, signature: new Uint8Array()}));
  t.false(isSigned({...record, signature: await key.sign(payload)}), 'signed for another purpose');
});
