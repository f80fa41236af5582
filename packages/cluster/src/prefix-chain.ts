import {hash} from 'node:crypto';

/**
 * A conversation as a chain of hashes, each of everything up to it: two that share a hash begin with the same bytes.
 * Needs no tokenizer. The key keeps others from finding out a prompt by trying; only members of the mesh have it.
 */
export interface PrefixChain {
  /** Up to each cut, 48 bits. */
  readonly hashes: readonly number[];
  /** Characters up to each cut. */
  readonly lengths: readonly number[];
  readonly length: number;
  /** 32 bits of the hash at the end of each message, as sketches hold them, oldest first. */
  readonly ends: readonly number[];
  /** Where in `hashes` each message ends. */
  readonly endIndexes: readonly number[];
}

/** Inside a message a match may end at each of these: a long prompt that differs at its end still mostly matches. */
const cutLength = 1024;

/** A conversation longer than this is only followed so far; one million characters take some milliseconds. */
const cutsMax = 1024;

export function prefixChain(key: string, conversation: readonly string[]): PrefixChain {
  const hashes: number[] = [];
  const lengths: number[] = [];
  const ends: number[] = [];
  const endIndexes: number[] = [];
  let state = key;
  let length = 0;
  for (const piece of conversation) {
    for (let start = 0; start === 0 || start < piece.length; start += cutLength) {
      if (hashes.length >= cutsMax) break;
      const block = piece.slice(start, start + cutLength);
      const isEnd = start + cutLength >= piece.length;
      state = hash('sha256', `${state}${block}${isEnd ? '\u001E' : ''}`);
      length += block.length;
      hashes.push(Number.parseInt(state.slice(0, 12), 16));
      lengths.push(length);
      if (!isEnd) continue;
      ends.push(Number.parseInt(state.slice(0, 8), 16));
      endIndexes.push(hashes.length - 1);
    }
  }
  const total = conversation.reduce((sum, piece) => sum + piece.length, 0);
  return {hashes, lengths, length: total, ends, endIndexes};
}
