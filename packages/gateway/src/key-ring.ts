import {createHash} from 'node:crypto';
import {addKey, callerOf, Fault, formatKeys, parseKeys, parseKeyWish, removeKey} from '@hearsay/core';
import type {Caller, Environment, Key, TextStore} from '@hearsay/core';

/** What every secret begins with, so that it can be told from the placeholders that clients send. */
const secretMark = 'hs-';

/** 256 bits: nobody guesses one, so a plain hash of it needs no salt and no slowness. */
const secretBytes = 32;

/** Who sent a request. */
export interface Identity {
  readonly caller: Caller;
  readonly admin: boolean;
}

/** The keys of the applications that may use this node. Secrets are shown once and kept as hashes only. */
export interface KeyRing {
  /** Whether there is any key. */
  readonly isEmpty: () => boolean;
  readonly list: () => readonly Key[];
  /** The new secret; `wish` is JSON from outside. */
  readonly create: (wish: unknown) => Promise<{readonly key: Key; readonly secret: string}>;
  readonly revoke: (name: string) => Promise<void>;
  /** Undefined: no key has that secret. */
  readonly identify: (secret: string) => Identity | undefined;
  /** Counts one request of the key; throws OVERLOADED that says when to come back when that is too many. */
  readonly count: (name: string) => void;
}

/** A text that is meant as one of our secrets, and not as the placeholder that a client had to send. */
export function isSecret(text: string): boolean {
  return text.startsWith(secretMark);
}

export async function startKeyRing(store: TextStore, {clock, random}: Environment): Promise<KeyRing> {
  const text = await store.read();
  let keys = text === undefined ? [] : parseKeys(text);
  let byHash = indexOf(keys);
  const buckets = new Map<string, {tokens: number; atMs: number}>();
  let last: Promise<unknown> = Promise.resolve();

  async function apply(wished: (before: readonly Key[]) => readonly Key[]): Promise<void> {
    const after = wished(keys);
    await store.write(formatKeys(after));
    keys = after;
    byHash = indexOf(after);
  }

  /** One change after another; it holds when it is on disk. */
  function change(wished: (before: readonly Key[]) => readonly Key[]): Promise<void> {
    const changed = last.then(async () => apply(wished));
    last = changed.catch(() => undefined); // the caller is told; the next change starts from what holds
    return changed;
  }

  return {
    isEmpty: () => keys.length === 0,
    list: () => keys,
    async create(wish) {
      const secret = `${secretMark}${Buffer.from(random.bytes(secretBytes)).toString('base64url')}`;
      const key: Key = {...parseKeyWish(wish), hash: hashOf(secret), createdWallMs: clock.wallMs()};
      await change(before => addKey(before, key));
      return {key, secret};
    },
    revoke: async name => change(before => removeKey(before, name)),
    identify(secret) {
      const key = byHash.get(hashOf(secret));
      return key && {caller: callerOf(key), admin: key.admin};
    },
    count(name) {
      const perMinute = keys.find(key => key.name === name)?.perMinute;
      if (perMinute === undefined) return;
      const nowMs = clock.monotonicMs();
      const {tokens, atMs} = buckets.get(name) ?? {tokens: perMinute, atMs: nowMs};
      const filled = Math.min(perMinute, tokens + ((nowMs - atMs) / 60_000) * perMinute);
      if (filled < 1) {
        const retryAfterMs = ((1 - filled) / perMinute) * 60_000;
        const message = `the key ${name} allows ${perMinute} requests a minute`;
        throw new Fault('OVERLOADED', message, {details: {retryAfterMs}});
      }
      buckets.set(name, {tokens: filled - 1, atMs: nowMs});
    },
  };
}

function indexOf(keys: readonly Key[]): ReadonlyMap<string, Key> {
  return new Map(keys.map(key => [key.hash, key]));
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
