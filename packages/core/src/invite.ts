import {decode, encode} from 'cborg';
import {z} from 'zod';
import {Fault} from './fault.ts';
import {isNodeId} from './ids.ts';
import type {NodeId} from './ids.ts';

/** What `hearsay invite` prints and `hearsay join` reads: whom to ask, where, and the secret that opens once. */
export interface InviteCode {
  readonly inviter: NodeId;
  /** Multiaddrs of the inviter, direct ones first, also through relays. */
  readonly addresses: readonly string[];
  readonly secret: Uint8Array;
}

/** Shows people what they hold, and which version of it. */
const prefix = 'hearsay1-';
const secretBytes = 16;
/** A code of that many addresses still fits into one message of any kind. */
const addressesMax = 8;
/** Longer than any code that is made; what is pasted by mistake is not parsed. */
const codeLengthMax = 4096;
const checkBytes = 4;

const schema = z
  .tuple([z.custom<NodeId>(isNodeId), z.instanceof(Uint8Array), z.array(z.string().max(256)).max(addressesMax)])
  .rest(z.unknown());

/** One word of letters, digits, `-` and `_`, so that a double click selects it and no shell changes it. */
export function formatInvite({inviter, addresses, secret}: InviteCode): string {
  const payload = encode([inviter, secret, addresses.slice(0, addressesMax)]);
  return prefix + base64url.encode(Uint8Array.from([...payload, ...checksum(payload)]));
}

/** Reads a code as people paste it: with spaces and line breaks in it. Throws BAD_REQUEST that says what is wrong. */
export function parseInvite(text: string): InviteCode {
  const compact = text.replaceAll(/\s/gu, '');
  if (!compact.startsWith(prefix)) throw bad('is no invite; an invite begins with hearsay1-');
  const bytes = compact.length > codeLengthMax ? undefined : base64url.decode(compact.slice(prefix.length));
  if (bytes === undefined) throw bad('is damaged or incomplete; copy it again');
  const payload = bytes.subarray(0, -checkBytes);
  const check = checksum(payload);
  if (bytes.length <= checkBytes || !check.every((byte, index) => byte === bytes[payload.length + index])) {
    throw bad('is damaged or incomplete; copy it again');
  }
  try {
    const [inviter, secret, addresses] = schema.parse(decode(payload));
    if (secret.length === secretBytes) return {inviter, secret, addresses};
  } catch (cause) {
    throw bad('is of a version that this hearsay does not know', cause);
  }
  throw bad('is of a version that this hearsay does not know');
}

function bad(what: string, cause?: unknown): Fault {
  return new Fault('BAD_REQUEST', `the code ${what}`, {cause});
}

/** Against slips of the clipboard, not against people: FNV-1a. */
function checksum(bytes: Uint8Array): Uint8Array {
  const hash = bytes.reduce((sum, byte) => Math.imul(sum ^ byte, 0x01000193) >>> 0, 0x811c9dc5);
  return Uint8Array.from([24, 16, 8, 0], shift => (hash >>> shift) & 255);
}

/** base64url, which the language itself does not have everywhere yet. */
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const base64url = {
  encode(bytes: Uint8Array): string {
    let text = '';
    for (let index = 0; index < bytes.length; index += 3) {
      const group = ((bytes[index] ?? 0) << 16) | ((bytes[index + 1] ?? 0) << 8) | (bytes[index + 2] ?? 0);
      const letters = [18, 12, 6, 0].map(shift => alphabet[(group >> shift) & 63] ?? '');
      text += letters.slice(0, Math.min(3, bytes.length - index) + 1).join('');
    }
    return text;
  },
  decode(text: string): Uint8Array | undefined {
    const values = Array.from(text, letter => alphabet.indexOf(letter));
    if (values.includes(-1) || values.length % 4 === 1) return undefined;
    const bytes: number[] = [];
    for (let index = 0; index < values.length; index += 4) {
      const group = [0, 1, 2, 3].reduce((sum, offset) => (sum << 6) | (values[index + offset] ?? 0), 0);
      bytes.push(...[16, 8, 0].map(shift => (group >> shift) & 255).slice(0, Math.min(4, values.length - index) - 1));
    }
    return Uint8Array.from(bytes);
  },
};
