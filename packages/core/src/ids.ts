/** One running daemon: its libp2p peer id in base58 (`12D3Koo…`), proven by the handshake. */
export type NodeId = string & {readonly brand: 'NodeId'};

/** `sha256:` and 64 hex digits: what a model is. Or `unproven:` and a local key while the file is still being hashed. */
export type Digest = string & {readonly brand: 'Digest'};

/** One client request through its whole life, on every node: 24 hex digits. */
export type RequestId = string & {readonly brand: 'RequestId'};

/** 64 lower-case hex digits after `sha256:`; anything else came from this machine and must not leave it. */
export function isProven(digest: Digest): boolean {
  return /^sha256:[0-9a-f]{64}$/u.test(digest);
}

/** Digits people see and type: the first twelve of the hash (S47). */
export function shortDigest(digest: Digest): string {
  return digest.slice(digest.indexOf(':') + 1).slice(0, 12);
}

/** Peer ids differ at their end, so people see the last eight characters. */
export function shortNode(node: NodeId): string {
  return node.slice(-8);
}
