import {createHash, timingSafeEqual} from 'node:crypto';
import type {IncomingHttpHeaders} from 'node:http';
import type {Problem} from './problem.ts';

/** Decides whether a request may come in; undefined: it may. Asked once for every request, before its body is read. */
export type Authorise = (headers: IncomingHttpHeaders) => Problem | undefined;

/** Pure: lets in who sends one of these keys, as a bearer token or as `x-api-key`; everybody when there are none. */
export function authoriseByKeys(keys: readonly string[]): Authorise {
  const known = keys.map(hash);
  return headers => {
    if (known.length === 0) return undefined;
    const sent = keysIn(headers);
    // Hashes have one length and tell nothing by the time that comparing them takes.
    if (sent.some(key => known.some(each => timingSafeEqual(each, hash(key))))) return undefined;
    return sent.length === 0 ? missing : wrong;
  };
}

/** Some clients send both, one of them a placeholder (facts: client-apis §3). */
export function keysIn({authorization = '', 'x-api-key': other}: IncomingHttpHeaders): readonly string[] {
  const bearer = /^bearer\s+(\S+)\s*$/iu.exec(authorization)?.[1];
  return [bearer, other].flat().flatMap(key => (key === undefined || key === '' ? [] : [key]));
}

function hash(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

const missing = unauthorised(
  'this node wants a key: send it as "Authorization: Bearer KEY" or "x-api-key: KEY"; its owner has them in gateway.keys',
);
const wrong = unauthorised('this key is not one of gateway.keys of this node');

export function unauthorised(message: string): Problem {
  return {
    kind: 'problem',
    status: 401,
    type: 'authentication_error',
    code: 'invalid_api_key',
    message,
    headers: {'www-authenticate': 'Bearer'},
  };
}
