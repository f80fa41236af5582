import {z} from 'zod';
import type {Caller, Rights} from './caller.ts';
import {describeError, Fault} from './fault.ts';
import {isKnownNodeText, nameLengthMax} from './limits.ts';
import {formatPolicy, parsePolicy} from './policy.ts';
import type {Policy} from './policy.ts';

/** One application's key, without its secret: of that only the SHA-256 is kept. */
export interface Key {
  /** What people call the application; unique on this node, compared without case. */
  readonly name: string;
  /** 64 hex digits of the SHA-256 of the secret. */
  readonly hash: string;
  readonly createdWallMs: number;
  readonly rights: Rights;
  /** What holds for its requests unless they say otherwise. */
  readonly policy: Policy | undefined;
  /** Requests in a minute; undefined: as many as it likes. */
  readonly perMinute: number | undefined;
  /** May use the admin API, also from other machines. */
  readonly admin: boolean;
}

/** More keys would be no list for people any more. */
const keysMax = 1000;

const names = z.array(z.string().min(1).max(nameLengthMax)).max(64).optional();

const keySchema = z.object({
  name: z.string().refine(isKnownNodeText, {error: 'a name of at most 200 characters without comma and equals sign'}),
  models: names,
  workloads: names,
  nodes: names,
  policies: z.array(z.enum(['auto', 'prefer', 'pin'])).optional(),
  policy: z.string().optional(),
  perMinute: z.int().positive().optional(),
  admin: z.boolean().optional(),
});

/** What somebody wishes a new key to be, from JSON. Throws BAD_REQUEST that says what is wrong. */
export function parseKeyWish(value: unknown): Omit<Key, 'hash' | 'createdWallMs'> {
  const parsed = keySchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new Fault('BAD_REQUEST', `${issue?.path.join('.') || 'the key'}: ${issue?.message ?? 'is wrong'}`);
  }
  return keyOf(parsed.data);
}

const fileSchema = z.object({
  version: z.literal(1),
  keys: z.array(keySchema.extend({hash: z.string().regex(/^[0-9a-f]{64}$/u), createdWallMs: z.number()})).max(keysMax),
});

/** Throws BAD_CONFIG: keys that cannot be read must not count as none. */
export function parseKeys(text: string): readonly Key[] {
  try {
    return fileSchema
      .parse(JSON.parse(text))
      .keys.map(key => ({...keyOf(key), hash: key.hash, createdWallMs: key.createdWallMs}));
  } catch (cause) {
    throw new Fault('BAD_CONFIG', `the file of keys cannot be read: ${describeError(cause)}`, {cause});
  }
}

export function formatKeys(keys: readonly Key[]): string {
  const plain = keys.map(({rights, policy, ...key}) => ({
    ...key,
    ...rights,
    policy: policy && formatPolicy(policy),
  }));
  return JSON.stringify({version: 1, keys: plain}, undefined, 2);
}

/** Pure. Throws BAD_REQUEST when the name is taken. */
export function addKey(keys: readonly Key[], key: Key): readonly Key[] {
  if (keys.some(({name}) => isSame(name, key.name))) {
    throw new Fault(
      'BAD_REQUEST',
      `there is a key ${key.name} already; revoke it first: hearsay key revoke ${key.name}`,
    );
  }
  if (keys.length >= keysMax) throw new Fault('BAD_REQUEST', `this node has ${keysMax} keys; revoke some`);
  return [...keys, key];
}

/** Pure. Throws MODEL_NOT_FOUND when there is no such key. */
export function removeKey(keys: readonly Key[], name: string): readonly Key[] {
  const rest = keys.filter(key => !isSame(key.name, name));
  if (rest.length < keys.length) return rest;
  throw new Fault('MODEL_NOT_FOUND', `this node has no key ${name}; see: hearsay key ls`);
}

export function callerOf({name, rights, policy}: Key): Caller {
  return {name, rights, policy};
}

function keyOf({
  models,
  workloads,
  nodes,
  policies,
  ...key
}: z.infer<typeof keySchema>): ReturnType<typeof parseKeyWish> {
  const {name, policy, perMinute, admin = false} = key;
  const rights = {models, workloads, nodes, policies};
  return {name, rights, policy: policy === undefined ? undefined : parsePolicy(policy), perMinute, admin};
}

function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
