import type {IncomingMessage} from 'node:http';
import {BlockList, isIP} from 'node:net';
import type {Caller} from '@hearsay/core';
import {isSecret} from './key-ring.ts';
import type {Identity, KeyRing} from './key-ring.ts';
import {problemFrom} from './problem.ts';
import type {Problem} from './problem.ts';

export interface KeyRules {
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

/** Programs of this machine may; an application only when its key says so. */
export function mayAdminister(request: IncomingMessage): boolean {
  return identities.get(request)?.admin ?? true;
}

/**
 * Finds out who sent a request and counts it; a problem when nobody may come in like that. A key that is sent must be
 * right, also where none is needed: who revokes one means it. Placeholders of clients count as none.
 */
export function identify(request: IncomingMessage, {ring, requireKey, insecure}: KeyRules): Problem | undefined {
  const secret = secretIn(request);
  if (secret !== undefined && isSecret(secret) && ring) {
    const identity = ring.identify(secret);
    if (identity === undefined) return unauthorized('this key is not known here, or was revoked');
    identities.set(request, identity);
    if (request.method !== 'POST') return undefined;
    try {
      ring.count(identity.caller.name);
      return undefined;
    } catch (error) {
      return problemFrom(error);
    }
  }
  if (insecure || (!requireKey && isThisMachine(request.socket.remoteAddress))) return undefined;
  return unauthorized(
    'a key is needed: send it as Authorization: Bearer KEY or x-api-key; hearsay key create makes one',
  );
}

/** As OpenAI and Ollama clients send it, or as Anthropic's do. */
function secretIn({headers}: IncomingMessage): string | undefined {
  const bearer = /^bearer\s+(\S+)\s*$/iu.exec(headers.authorization ?? '')?.[1];
  const other = headers['x-api-key'];
  return bearer ?? (Array.isArray(other) ? other[0] : other)?.trim();
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

function isThisMachine(address: string | undefined): boolean {
  const family = isIP(address ?? '');
  return address !== undefined && family !== 0 && loopback.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

function unauthorized(message: string): Problem {
  return {
    kind: 'problem',
    status: 401,
    type: 'authentication_error',
    code: 'invalid_api_key',
    message,
    headers: {'www-authenticate': 'Bearer', 'x-should-retry': 'false'},
  };
}
