import {Fault} from './fault.ts';
import {isKnownNodeText} from './limits.ts';

/** Where a request may run. Automatic ranks all; prefer falls back and says so; pin fails with the reason (S91–S93). */
export type Placement =
  | {readonly kind: 'auto'}
  | {readonly kind: 'prefer'; readonly nodes: readonly string[]}
  | {readonly kind: 'pin'; readonly nodes: readonly string[]};

export interface Policy {
  readonly placement: Placement;
  /** Nodes that never get it, as people name them. */
  readonly exclude: readonly string[];
  /** local-required never leaves the mesh (law 7); it is what holds unless somebody says otherwise. */
  readonly localRequired: boolean;
}

export const automatic: Policy = {placement: {kind: 'auto'}, exclude: [], localRequired: true};

/** Most nodes that one policy may name; far more than a mesh has machines worth naming. */
const namedNodesMax = 64;

const grammar =
  'a policy is auto, prefer=NODE[,NODE…] or pin=NODE[,NODE…], and further parts after a semicolon: ' +
  'exclude=NODE[,NODE…], local-required, local-preferred';

/**
 * Parses a policy as written in the `x-hearsay-policy` header, in the config and on the command line: `auto`,
 * `prefer=a,b`, `pin=a`, each with `;exclude=c` or `;local-preferred` behind it, or these alone.
 */
export function parsePolicy(text: string): Policy {
  let policy = automatic;
  let places = 0;
  for (const part of text.split(';')) {
    const [word = '', list] = part.trim().split('=', 2);
    if (word === 'auto' && list === undefined) places += 1;
    else if (word === 'local-required' && list === undefined) policy = {...policy, localRequired: true};
    else if (word === 'local-preferred' && list === undefined) policy = {...policy, localRequired: false};
    else if (word === 'exclude') policy = {...policy, exclude: nodesIn(list)};
    else if (word === 'prefer' || word === 'pin') {
      places += 1;
      policy = {...policy, placement: {kind: word, nodes: nodesIn(list)}};
    } else throw new Fault('BAD_REQUEST', grammar);
  }
  if (places > 1) throw new Fault('BAD_REQUEST', grammar);
  return policy;
}

/** The policy as one word for the response header and for people; what `parsePolicy` reads. */
export function formatPolicy({placement, exclude, localRequired}: Policy): string {
  const place = placement.kind === 'auto' ? 'auto' : `${placement.kind}=${placement.nodes.join(',')}`;
  const out = exclude.length > 0 ? `;exclude=${exclude.join(',')}` : '';
  return `${place}${out}${localRequired ? '' : ';local-preferred'}`;
}

/**
 * Who asked for a policy, the strongest first. `context` is no person's wish: the context that a client would like
 * means some nodes more than others, as long as nobody says anything about nodes.
 */
export type PolicySource =
  | 'operator'
  | 'header'
  | 'provider'
  | 'name'
  | 'workload'
  | 'key'
  | 'config'
  | 'context'
  | 'default';

/** One policy that somebody wishes for a request. */
export interface PolicyWish {
  readonly from: PolicySource;
  readonly policy: Policy;
}

/**
 * Pure: of all wishes for one request, the one that holds. The strongest decides where it may run and whether it may
 * leave; excluded nodes add up, because no wish for a node undoes the wish to spare another.
 */
export function choosePolicy(wishes: readonly (PolicyWish | undefined)[]): PolicyWish {
  const given = wishes.filter(wish => wish !== undefined);
  const strongest = given.toSorted((a, b) => strength[a.from] - strength[b.from])[0];
  if (strongest === undefined) return {from: 'default', policy: automatic};
  const exclude = [...new Set(given.flatMap(({policy}) => policy.exclude))];
  return {from: strongest.from, policy: {...strongest.policy, exclude}};
}

const strength: Readonly<Record<PolicySource, number>> = {
  operator: 0,
  header: 1,
  provider: 2,
  name: 3,
  workload: 4,
  key: 5,
  config: 6,
  context: 7,
  default: 8,
};

function nodesIn(list: string | undefined): readonly string[] {
  const nodes = (list ?? '')
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '');
  if (nodes.length === 0 || nodes.length > namedNodesMax || !nodes.every(isKnownNodeText)) {
    throw new Fault('BAD_REQUEST', grammar);
  }
  return nodes;
}
