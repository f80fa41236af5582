/**
 * Largest beat: fits one UDP-sized packet many times over and keeps fifty nodes under 40 kB/s (facts: gossip model).
 */
export const beatBytesMax: number = 400;

/** Largest signed record, with room for a beat of a newer version. */
export const recordBytesMax: number = 2048;

/** Largest inventory: some hundred models with long names. */
export const inventoryBytesMax: number = 256 * 1024;

/** Largest stream header: an offer with 64 accepted digests. */
export const offerBytesMax: number = 8 * 1024;

/** Largest request body anywhere: images travel as base64. No hop has a smaller limit than the entry (C24). */
export const bodyBytesMax: number = 64 * 1024 * 1024;

/**
 * Largest body between nodes. What the gateway and a workload add to one, with the fields of a form and its boundaries,
 * must not make it too large for every peer.
 */
export const sentBytesMax: number = bodyBytesMax + 1024 * 1024;

/** Longest content type of a request body: a multipart boundary has 70 characters at most. */
export const contentTypeLengthMax: number = 200;

/** Longest name of a node, a mesh or a model that anybody may send. */
export const nameLengthMax: number = 200;

/** Most nodes that a view holds; far above what one mesh is meant for. */
export const viewNodesMax: number = 1024;

/** Node names and ids as people may write them: no control characters, no commas. */
export function isKnownNodeText(text: string): boolean {
  return text.length > 0 && text.length <= nameLengthMax && /^[^\p{C},=]+$/u.test(text);
}

/** Largest signed statement on membership: two node ids and a name. */
export const statementBytesMax: number = 1024;

/**
 * Most revocations that a mesh remembers: far more machines than one owner gives away, and few enough that all of them,
 * each with the passes of its signer, leave room in an exchange.
 */
export const revocationsMax: number = 256;
