import {z} from 'zod';
import {describeError, Fault} from './fault.ts';
import {isKnownNodeText} from './limits.ts';
import {formatPolicy, parsePolicy} from './policy.ts';
import type {Policy, PolicyWish} from './policy.ts';

/** A policy that the owner of a node has set outside of any request, for those that enter at this node (S95). */
export interface PolicyRule {
  /** A model or workload as clients name it, or `key:` and the name of an application's key. Lower case. */
  readonly subject: string;
  readonly policy: Policy;
}

/** What the owner of a node has said about it. Survives a restart. */
export interface OperatorState {
  /** Takes no new requests; running ones end. */
  readonly draining: boolean;
  /** The owner uses the machine: as draining, and idle models are unloaded. */
  readonly paused: boolean;
  readonly rules: readonly PolicyRule[];
}

export const idleOperator: OperatorState = {draining: false, paused: false, rules: []};

export type OperatorChange =
  | {readonly kind: 'drain' | 'undrain' | 'pause' | 'resume'}
  | {readonly kind: 'set rule'; readonly rule: PolicyRule}
  | {readonly kind: 'remove rule'; readonly subject: string};

/** Rules of one node: a person set each of them. */
const rulesMax = 1000;

/** Pure. Throws BAD_REQUEST for a rule that is not there. */
export function changeOperator(state: OperatorState, change: OperatorChange): OperatorState {
  switch (change.kind) {
    case 'drain':
    case 'undrain':
      return {...state, draining: change.kind === 'drain'};
    case 'pause':
    case 'resume':
      return {...state, paused: change.kind === 'pause'};
    case 'set rule': {
      const subject = toSubject(change.rule.subject);
      const others = state.rules.filter(rule => rule.subject !== subject);
      if (others.length >= rulesMax) throw new Fault('BAD_REQUEST', `this node has ${rulesMax} policies; remove some`);
      return {...state, rules: [...others, {...change.rule, subject}]};
    }
    case 'remove rule': {
      const subject = toSubject(change.subject);
      const rules = state.rules.filter(rule => rule.subject !== subject);
      if (rules.length < state.rules.length) return {...state, rules};
      throw new Fault('MODEL_NOT_FOUND', `this node has no policy for ${subject}; see: hearsay policy ls`);
    }
  }
}

/** Pure: the wishes of the owner for a request with these names: as asked, as found, its workload, its key. */
export function rulesFor(
  {rules}: OperatorState,
  names: readonly string[],
  key: string | undefined,
): readonly PolicyWish[] {
  const subjects = new Set(names.map(name => name.toLowerCase()));
  if (key !== undefined) subjects.add(`key:${key.toLowerCase()}`);
  return rules.filter(({subject}) => subjects.has(subject)).map(({policy}) => ({from: 'operator', policy}));
}

export function formatOperator(state: OperatorState): string {
  const rules = state.rules.map(({subject, policy}) => ({subject, policy: formatPolicy(policy)}));
  return JSON.stringify({version: 1, ...state, rules}, undefined, 2);
}

const schema = z.object({
  version: z.literal(1),
  draining: z.boolean(),
  paused: z.boolean(),
  rules: z.array(z.object({subject: z.string(), policy: z.string()})).max(rulesMax),
});

/** Throws BAD_CONFIG: a node whose owner has said something that cannot be read must not act as if he had not. */
export function parseOperator(text: string): OperatorState {
  try {
    const {draining, paused, rules} = schema.parse(JSON.parse(text));
    return {
      draining,
      paused,
      rules: rules.map(({subject, policy}) => ({subject: toSubject(subject), policy: parsePolicy(policy)})),
    };
  } catch (cause) {
    throw new Fault('BAD_CONFIG', `the state that the owner has set cannot be read: ${describeError(cause)}`, {cause});
  }
}

function toSubject(text: string): string {
  const subject = text.trim().toLowerCase();
  if (isKnownNodeText(subject)) return subject;
  throw new Fault('BAD_REQUEST', 'a policy is for the name of a model or workload, or for key:NAME');
}
