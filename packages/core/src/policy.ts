import {Fault} from './fault.ts';
import {isKnownNodeText} from './limits.ts';

/** Where a request may run. Automatic ranks all; prefer falls back and says so; pin fails with the reason (S91–S93). */
export type Placement =
  | {readonly kind: 'auto'}
  | {readonly kind: 'prefer'; readonly nodes: readonly string[]}
  | {readonly kind: 'pin'; readonly nodes: readonly string[]};

export interface Policy {
  readonly placement: Placement;
  /** local-required never leaves the mesh (law 7). Hosted providers come later, so it is always true today. */
  readonly localRequired: boolean;
}

export const automatic: Policy = {placement: {kind: 'auto'}, localRequired: true};

/** Parses `auto`, `prefer=a,b` or `pin=a` as written in the `x-hearsay-policy` header. */
export function parsePolicy(text: string): Policy {
  const [word = '', list = ''] = text.trim().split('=', 2);
  const nodes = list
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '');
  if (word === 'auto' && list === '') return automatic;
  if ((word === 'prefer' || word === 'pin') && nodes.length > 0 && nodes.every(isKnownNodeText)) {
    return {...automatic, placement: {kind: word, nodes}};
  }
  throw new Fault('BAD_REQUEST', 'x-hearsay-policy must be auto, prefer=NODE[,NODE…] or pin=NODE[,NODE…]');
}

/** The policy as one word for the response header and for people. */
export function formatPolicy({placement}: Policy): string {
  return placement.kind === 'auto' ? 'auto' : `${placement.kind}=${placement.nodes.join(',')}`;
}
