import {exclusionWords, Fault} from '@hearsay/core';
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

/** Nodes in one message; the details have all. */
const toldMax = 10;

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
  return new Fault('NO_CANDIDATE', nobodyCan(request, others), {details});
}

function nobodyCan({policy: {placement}}: ClientRequest, others: readonly Ranked[]): string {
  if (placement.kind !== 'pin') return `no node can run this now (${reasons(others)})`;
  const pinned = `pinned to ${placement.nodes.join(' or ')}, and it cannot run this now`;
  const meant = others.filter(({exclusion}) => exclusion !== 'policy');
  if (meant.length > 0) return `${pinned} (${reasons(meant)})`;
  const names = listed(others.map(({name}) => name)).join(', ');
  return `${pinned} (no node of that name is here; those that are: ${names})`;
}

/** Of those that have the model, as far as there are any. */
function reasons(nodes: readonly Ranked[]): string {
  const holders = nodes.filter(({exclusion}) => exclusion !== 'artifact');
  const told = holders.length > 0 ? holders : nodes;
  return listed(
    told.map(({name, exclusion}) => `${name}: ${exclusion ? exclusionWords[exclusion] : 'not asked'}`),
  ).join('; ');
}

function listed(texts: readonly string[]): readonly string[] {
  const rest = texts.length - toldMax;
  return rest > 0 ? [...texts.slice(0, toldMax), `and ${rest} more`] : texts;
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
