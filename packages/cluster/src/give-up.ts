import {Fault} from '@hearsay/core';
import type {ClientRequest, NodeId, Ranked} from '@hearsay/core';
import {tooLargeEverywhere} from './too-large.ts';

/** A node that will not be asked again for a request. */
export interface Tried {
  readonly name: string;
  /** In words. */
  readonly reason: string;
  /** It refused because the model does not fit there. */
  readonly isTooLarge: boolean;
}

interface Search {
  /** The last ranking. */
  readonly ranked: readonly Ranked[];
  readonly tried: ReadonlyMap<NodeId, Tried>;
  /** Waits that busy nodes have told, in milliseconds. */
  readonly busyMs: readonly number[];
  readonly firstFault: Fault | undefined;
}

/** Pure: the first cause, with what the others said (R22); or why nobody could be asked at all. */
export function giveUp(request: ClientRequest, {ranked, tried: triedNodes, busyMs: waits, firstFault}: Search): Fault {
  const tried = [...triedNodes.values()];
  const attempts = tried.map(({name, reason}) => `${name}: ${reason}`);
  const others = ranked.filter(({node}) => !triedNodes.has(node));
  const excluded = others.map(({name, exclusion}) => `${name}: ${exclusion ?? 'not asked'}`);
  if (tried.every(({isTooLarge}) => isTooLarge)) {
    const fault = tooLargeEverywhere(request.model, others, tried);
    if (fault) return fault;
  }
  const details = {attempts, excluded};
  if (firstFault) {
    const {code, message} = firstFault;
    const retryAfterMs = waits.length > 0 ? {retryAfterMs: Math.min(...waits)} : {};
    const more = attempts.length > 1 ? ` (tried: ${attempts.join('; ')})` : '';
    return new Fault(code, `${message}${more}`, {
      cause: firstFault,
      details: {...firstFault.details, ...details, ...retryAfterMs},
    });
  }
  if (isForbidden(others)) {
    const nodes = others.filter(({exclusion}) => exclusion === 'not authorized').map(({name}) => name);
    const right = `the node ${nodes.join(' or ')}`;
    const message = `the key ${request.caller?.name ?? ''} lacks a right that this request needs: ${right}`;
    return new Fault('FORBIDDEN', message, {details: {right, retryable: false}});
  }
  if (others.some(isUnable) && others.every(each => isUnable(each) || each.exclusion === 'artifact')) {
    const {model, needs} = request;
    const lacking = needs.length === 1 ? needs.join() : `at least one of ${needs.join(', ')}`;
    return new Fault('BAD_REQUEST', `${model || 'the model'} cannot do this: it lacks ${lacking}`, {details});
  }
  const {placement} = request.policy;
  const what = placement.kind === 'pin' ? `pinned to ${placement.nodes.join(' or ')}, and it` : 'no node';
  const not = placement.kind === 'pin' ? 'cannot' : 'can';
  return new Fault('NO_CANDIDATE', `${what} ${not} run this now (${excluded.join('; ')})`, {details});
}

/** Nobody is left, and only the rights of the key kept those out that could have run it. */
function isForbidden(nodes: readonly Ranked[]): boolean {
  const others = nodes.filter(({exclusion}) => exclusion !== 'policy' && exclusion !== 'artifact');
  return others.length > 0 && others.every(({exclusion}) => exclusion === 'not authorized');
}

/** Has the model, which is no model for this: asking again cannot help. */
function isUnable({exclusion}: Ranked): boolean {
  return exclusion === 'capability';
}
