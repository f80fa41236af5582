import {automatic, choosePolicy, describeError, isKnownNodeText, parsePolicy} from '@hearsay/core';
import type {ClientRequest, Policy, PolicyWish} from '@hearsay/core';
import {isObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {badRequest, problemFrom} from './problem.ts';
import type {Problem} from './problem.ts';

/** What a request itself says about where it may run. */
export type AskedPolicy = Pick<ClientRequest, 'policy' | 'policyFrom'>;

/**
 * Pure: the policy of the header `x-hearsay-policy` before that of the body's `provider` object; nodes that either
 * excludes stay excluded.
 */
export function readPolicy(header: string | undefined, provider: unknown): AskedPolicy | Problem {
  const wishes: PolicyWish[] = [];
  if (header !== undefined) {
    try {
      wishes.push({from: 'header', policy: parsePolicy(header)});
    } catch (error) {
      return {...problemFrom(error), message: describeError(error), param: 'x-hearsay-policy'};
    }
  }
  if (provider !== undefined && provider !== null) {
    const policy = isObject(provider) ? policyOfProvider(provider) : undefined;
    if (policy === undefined) return badRequest(`provider ${providerGrammar}`, {param: 'provider'});
    wishes.push({from: 'provider', policy});
  }
  if (wishes.length === 0) return {policy: automatic, policyFrom: undefined};
  const {policy, from} = choosePolicy(wishes);
  return {policy, policyFrom: from === 'header' ? 'header' : 'provider'};
}

const providerGrammar =
  'is an object with some of: order (nodes to prefer), only (nodes to pin it to), ignore (nodes to exclude), ' +
  'allow_fallbacks (false: pin it to those of order)';

/** OpenRouter's words for it; of its other fields none makes sense here. */
function policyOfProvider(provider: JsonObject): Policy | undefined {
  const {allow_fallbacks: fallbacks} = provider;
  const [order, only, ignore] = [provider['order'], provider['only'], provider['ignore']].map(nodesIn);
  if (order === undefined || only === undefined || ignore === undefined) return undefined;
  const isStrict = fallbacks === false;
  const pinned = only.length > 0 ? only : isStrict ? order : [];
  const placement: Policy['placement'] =
    pinned.length > 0
      ? {kind: 'pin', nodes: pinned}
      : order.length > 0
        ? {kind: 'prefer', nodes: order}
        : {kind: 'auto'};
  return {...automatic, placement, exclude: ignore};
}

/** Most nodes of one list. */
const listMax = 64;

function nodesIn(list: unknown): readonly string[] | undefined {
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list) || list.length > listMax) return undefined;
  const names = list.filter(name => typeof name === 'string').filter(isKnownNodeText);
  return names.length === list.length ? names : undefined;
}
