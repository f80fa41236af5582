import type {IncomingMessage} from 'node:http';
import {BlockList, isIP} from 'node:net';
import type {Caller} from '@hearsay/core';
import {isSecret} from './key-ring.ts';
import type {Identity, KeyRing} from './key-ring.ts';
import {authoriseByKeys, keysIn, unauthorised} from './keys.ts';
import {problemFrom} from './problem.ts';
import {remembered} from './remembered.ts';
import type {Problem} from './problem.ts';

export interface KeyRules {
  /** Keys of the config file: the owner's own, which open everything. */
  readonly keys: readonly string[];
  readonly ring: KeyRing | undefined;
  /** Also programs of this machine need a key. */
  readonly requireKey: boolean;
  /** The owner lets everybody in who reaches the listener. */
  readonly insecure: boolean;
}

/** Who sent a request, kept beside it as long as it lives. */
const identities = new WeakMap<IncomingMessage, Identity>();

/** The application that a request came from; undefined: a program of this machine without a key. */
export function callerIn(request: IncomingMessage): Caller | undefined {
  return identities.get(request)?.caller;
}

/** Longest name of a program that counts. */
const agentLengthMax = 100;

/** Whose turn it is when requests wait: that of a key, else of a program on a machine as far as it shows. */
export function clientOf(request: IncomingMessage): string {
  const caller = callerIn(request);
  if (caller) return `key ${caller.name}`;
  const agent = request.headers['user-agent'] ?? '';
  return `${request.socket.remoteAddress ?? ''} ${agent.slice(0, agentLengthMax)}`;
}

/** Programs of this machine may; an application only when its key says so. */
export function mayAdminister(request: IncomingMessage): boolean {
  return identities.get(request)?.admin ?? true;
}

/**
 * Finds out who sent a request and counts it; a problem when nobody may come in like that. A key that is sent must be
 * right, also where none is needed: who revokes one means it. Placeholders of clients count as none.
 */
export function identifyBy({
  keys,
  ring,
  requireKey,
  insecure,
}: KeyRules): (request: IncomingMessage) => Problem | undefined {
  const authorise = authoriseByKeys(keys);
  const lacks = keys.length > 0 ? authorise : () => undefined;
  return request => {
    const {headers, method, socket} = request;
    if (keys.length > 0 && authorise(headers) === undefined) return undefined;
    const secret = keysIn(headers).find(isSecret);
    if (secret !== undefined && ring) return known(request, secret, ring, method === 'POST');
    const problem = lacks(headers);
    if (problem || insecure || (!requireKey && isThisMachine(socket.remoteAddress ?? ''))) return problem;
    return unauthorised(
      'a key is needed: send it as Authorization: Bearer KEY or x-api-key: KEY; hearsay key create makes one',
    );
  };
}

function known(request: IncomingMessage, secret: string, ring: KeyRing, counts: boolean): Problem | undefined {
  const identity = ring.identify(secret);
  if (identity === undefined) return unauthorised('this key is not known here, or was revoked');
  identities.set(request, identity);
  if (!counts) return undefined;
  try {
    ring.count(identity.caller.name);
    return undefined;
  } catch (error) {
    return problemFrom(error);
  }
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

const isThisMachine = remembered(address => {
  const family = isIP(address);
  return family !== 0 && loopback.check(address, family === 6 ? 'ipv6' : 'ipv4');
});
