import {createPrivateKey, createPublicKey, sign, verify} from 'node:crypto';
import type {KeyObject} from 'node:crypto';
import {link, mkdir, readFile, rm, writeFile} from 'node:fs/promises';
import {dirname} from 'node:path';
import {generateKeyPair, privateKeyFromProtobuf, privateKeyToProtobuf} from '@libp2p/crypto/keys';
import type {Ed25519PrivateKey, PeerId} from '@libp2p/interface';
import {peerIdFromString} from '@libp2p/peer-id';
import {Fault, hasCode, recordContext, statementContext} from '@hearsay/core';
import type {NodeId, SignedRecord, SignedStatement} from '@hearsay/core';
import {concat} from 'uint8arrays/concat';

/**
 * The node's key, which is its identity for ever: made at the first start, readable by its owner only. A file that
 * cannot be used is never replaced, because the other nodes know this node by it.
 */
export async function loadIdentity(file: string): Promise<Ed25519PrivateKey> {
  const kept = await readIdentity(file);
  if (kept !== undefined) return kept;
  const key = await generateKeyPair('Ed25519');
  // Written aside and then linked, so that neither a crash nor another process ever meets half a key.
  const aside = `${file}.${key.publicKey.toString().slice(-8)}`;
  try {
    await mkdir(dirname(file), {recursive: true, mode: 0o700});
    await writeFile(aside, privateKeyToProtobuf(key), {mode: 0o600, flag: 'wx'});
    await link(aside, file);
    return key;
  } catch (cause) {
    // Another process may have been quicker: then its key is the one that counts.
    const winner = hasCode(cause, 'EEXIST') ? await readIdentity(file) : undefined;
    if (winner !== undefined) return winner;
    throw new Fault('BAD_CONFIG', `cannot write the node's key to ${file}; make its folder writable`, {cause});
  } finally {
    await rm(aside, {force: true}).catch(() => undefined); // a folder that cannot be written was reported already
  }
}

async function readIdentity(file: string): Promise<Ed25519PrivateKey | undefined> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(file);
  } catch (cause) {
    if (hasCode(cause, 'ENOENT')) return undefined;
    throw new Fault('BAD_CONFIG', `cannot read the node's key in ${file}; check its owner and mode`, {cause});
  }
  const advice = 'restore it from a backup, or delete it to start as a new node that the others do not know yet';
  try {
    const key = privateKeyFromProtobuf(bytes);
    if (key.type === 'Ed25519') return key;
  } catch (cause) {
    throw new Fault('BAD_CONFIG', `the node's key in ${file} is damaged; ${advice}`, {cause});
  }
  throw new Fault('BAD_CONFIG', `the node's key in ${file} is not an ed25519 key; ${advice}`);
}

/**
 * Node ids are peer ids as text. They come from the handshake or from a decoder, so they are proven or at least well
 * formed.
 */
export function nodeIdOf(peer: PeerId): NodeId {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- This is the parser of the brand.
  return peer.toString() as NodeId;
}

/** DER around a raw ed25519 seed and a raw public key (RFC 8410). */
const seedPrefix = Buffer.from('302e020100300506032b657004220420', 'hex');
const publicPrefix = Buffer.from('302a300506032b6570032100', 'hex');
const seedBytes = 32;

/** Keys of peers that are kept ready: more than any mesh of ours has nodes. */
const verifiersMax = 1024;

// libp2p imports a key anew for every signature, which costs several times the signature itself; records are signed
// and checked on the way of requests.
const signers = new WeakMap<Ed25519PrivateKey, KeyObject>();
const verifiers = new Map<NodeId, KeyObject>();

/** Signs a payload as the node that owns the key. */
export function signRecord(key: Ed25519PrivateKey, node: NodeId, payload: Uint8Array): SignedRecord {
  return {node, payload, signature: signWith(key, recordContext, payload)};
}

/** True when the node that the record names has really signed it. Never throws, whatever the bytes are. */
export function isSigned({node, payload, signature}: SignedRecord): boolean {
  return isSignedBy(node, concat([recordContext, payload]), signature);
}

/** As `signRecord`, for what a node says about membership. */
export function signStatement(key: Ed25519PrivateKey, signer: NodeId, payload: Uint8Array): SignedStatement {
  return {signer, payload, signature: signWith(key, statementContext, payload)};
}

/** As `isSigned`. */
export function isStatementSigned({signer, payload, signature}: SignedStatement): boolean {
  return isSignedBy(signer, concat([statementContext, payload]), signature);
}

function signWith(key: Ed25519PrivateKey, context: Uint8Array, payload: Uint8Array): Uint8Array {
  return Uint8Array.from(sign(null, concat([context, payload]), signerOf(key)));
}

function isSignedBy(node: NodeId, bytes: Uint8Array, signature: Uint8Array): boolean {
  try {
    const verifier = verifierOf(node);
    return verifier !== undefined && verify(null, bytes, verifier, signature);
  } catch {
    return false; // neither a node id nor a signature that the library can read
  }
}

function signerOf(key: Ed25519PrivateKey): KeyObject {
  const known = signers.get(key);
  if (known) return known;
  const der = Buffer.concat([seedPrefix, key.raw.subarray(0, seedBytes)]);
  const signer = createPrivateKey({key: der, format: 'der', type: 'pkcs8'});
  signers.set(key, signer);
  return signer;
}

/** Undefined for the ids of other kinds of keys. */
function verifierOf(node: NodeId): KeyObject | undefined {
  const known = verifiers.get(node);
  if (known) return known;
  const peer = peerIdFromString(node);
  if (peer.type !== 'Ed25519') return undefined;
  const der = Buffer.concat([publicPrefix, peer.publicKey.raw]);
  const verifier = createPublicKey({key: der, format: 'der', type: 'spki'});
  const [oldest] = verifiers.keys();
  if (verifiers.size >= verifiersMax && oldest !== undefined) verifiers.delete(oldest);
  verifiers.set(node, verifier);
  return verifier;
}
