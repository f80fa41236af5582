import type {FastifyRequest} from 'fastify';
import {plainPath} from './plain-path.ts';
import {badRequest} from './problem.ts';
import type {Problem} from './problem.ts';

/**
 * Pure: what is allowed at the path of a URL, of `allowed` by path, where a `*` at the end stands for anything.
 * Undefined: there is no such path.
 */
export function allowedAt(url: string, allowed: ReadonlyMap<string, string>): string | undefined {
  const path = decoded(plainPath(url).split(/[?#]/u, 1)[0] ?? '').replace(/(?<=.)\/$/u, '');
  const own = allowed.get(path);
  if (own !== undefined) return own;
  const wild = [...allowed.keys()].find(each => each.endsWith('*') && path.startsWith(each.slice(0, -1)));
  return wild === undefined ? undefined : allowed.get(wild);
}

/** As it is where it cannot be decoded: then it is no path of ours either. */
function decoded(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

export function wrongMethod({method}: FastifyRequest, allowed: string): Problem {
  return badRequest(`${method} is not possible here; use ${allowed}`, {
    status: 405,
    code: 'method_not_allowed',
    headers: {allow: allowed},
  });
}

/** Of all that is served it names what the client was near: one dialect, or the admin API. */
export function unknownPath({method, url}: FastifyRequest, known: readonly string[]): Problem {
  const path = plainPath(url).split('?', 1)[0]?.slice(0, 200) ?? '';
  const folder = `/${path.split('/')[1] ?? ''}/`;
  const near = known.filter(each => each.includes(` ${folder}`));
  const served = near.length > 0 ? near : known.filter(each => each.includes(' /v1/'));
  const message = `${method} ${path} does not exist; hearsay serves ${served.join(', ')}`;
  return badRequest(message, {status: 404, code: 'not_found'});
}
