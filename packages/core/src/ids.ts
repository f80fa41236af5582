import type {Random} from './environment.ts';
import {Fault} from './fault.ts';

/** One running daemon: its libp2p peer id in base58 (`12D3Koo…`), proven by the handshake. */
export type NodeId = string & {readonly brand: 'NodeId'};

/**
 * `sha256:` and 64 hex digits: what a model is. Or `unproven:` and a local key while the file is still being hashed.
 */
export type Digest = string & {readonly brand: 'Digest'};

/** One client request through its whole life, on every node: 24 hex digits. */
export type RequestId = string & {readonly brand: 'RequestId'};

export function isNodeId(value: unknown): value is NodeId {
  return typeof value === 'string' && /^[1-9A-HJ-NP-Za-km-z]{20,90}$/u.test(value);
}

export function isDigest(value: unknown): value is Digest {
  return typeof value === 'string' && /^(?:sha256:[0-9a-f]{64}|unproven:[\w.-]{1,100})$/u.test(value);
}

export function isRequestId(value: unknown): value is RequestId {
  return typeof value === 'string' && /^[0-9a-f]{24}$/u.test(value);
}

/** Throws INTERNAL: ids are made by libp2p, not typed by people. */
export function toNodeId(text: string): NodeId {
  if (isNodeId(text)) return text;
  throw new Fault('INTERNAL', `not a node id: ${text.slice(0, 100)}`);
}

/** Accepts `sha256:…` and `unproven:…`; throws INTERNAL on anything else. */
export function toDigest(text: string): Digest {
  if (isDigest(text)) return text;
  throw new Fault('INTERNAL', `not a digest: ${text.slice(0, 100)}`);
}

export function newRequestId(random: Random): RequestId {
  const text = hexFrom(random.bytes(12));
  if (isRequestId(text)) return text;
  throw new Fault('INTERNAL', 'random gave too few bytes');
}

/** 64 lower-case hex digits after `sha256:`; anything else came from this machine and must not leave it. */
export function isProven(digest: Digest): boolean {
  return digest.startsWith('sha256:');
}

/** Digits people see and type: the first twelve of the hash (S47). */
export function shortDigest(digest: Digest): string {
  return digest.slice(digest.indexOf(':') + 1).slice(0, 12);
}

/** Peer ids differ at their end, so people see the last eight characters. */
export function shortNode(node: NodeId): string {
  return node.slice(-8);
}

export function hexFrom(value: Uint8Array): string {
  let text = '';
  for (const byte of value) text += hexDigits[byte];
  return text;
}

const hexDigits = Array.from({length: 256}, (_, byte) => byte.toString(16).padStart(2, '0'));
