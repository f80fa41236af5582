import {allows, lacksRight} from './caller.ts';
import type {Caller} from './caller.ts';
import {Fault} from './fault.ts';
import type {Digest} from './ids.ts';
import {isKnownNodeText} from './limits.ts';
import {mayUse, namedNodes, nodesFor} from './may-use.ts';
import type {Capability} from './model.ts';
import {rulesFor} from './operator.ts';
import type {OperatorState} from './operator.ts';
import {automatic, choosePolicy} from './policy.ts';
import type {Policy, PolicySource, PolicyWish} from './policy.ts';
import {resolveModel} from './resolve-model.ts';
import type {Resolution} from './resolve-model.ts';
import {acceptedDigests} from './workload.ts';
import type {HeldModel, Workload} from './workload.ts';

/** What a client asks for, and everything at this node that bears on it. */
export interface PlanInputs {
  /** The name as asked; empty: none. */
  readonly asked: string;
  readonly needs: readonly Capability[];
  /** What the request itself says: a header, or the `provider` object of its body. */
  readonly wish: PolicyWish | undefined;
  readonly caller: Caller | undefined;
  readonly models: readonly HeldModel[];
  readonly workloads: readonly Workload[];
  readonly operator: OperatorState;
  /** The config's default. */
  readonly policy: Policy | undefined;
}

/** What will be looked for. */
export interface Plan {
  readonly kind: 'plan';
  /** The model's canonical name, or that of the workload. */
  readonly name: string;
  /** Accepted models, best first. */
  readonly digests: readonly Digest[];
  readonly needs: readonly Capability[];
  readonly policy: Policy;
  readonly policyFrom: PolicySource;
  readonly parameters: Workload['parameters'];
  readonly exact: boolean;
}

export type PlanResult =
  | Plan
  | Exclude<Resolution, {readonly kind: 'found'}>
  /** Nobody has a model that the workload accepts. */
  | {readonly kind: 'unaccepted'; readonly name: string; readonly accepted: readonly string[]};

/**
 * Pure: from what was asked to the models that may run it and the policy that holds. Throws FORBIDDEN when the key of
 * the application lacks a right, and says which.
 */
export function planRequest(inputs: PlanInputs): PlanResult {
  const workload = inputs.workloads.find(({name}) => name.toLowerCase() === inputs.asked.trim().toLowerCase());
  return workload ? planWorkload(workload, inputs) : planModel(inputs);
}

/**
 * Pure: the plan for a name that no node can serve, for whoever else may. It has no models; rights and policy are
 * judged as `planRequest` does.
 */
export function planUnheld(inputs: PlanInputs): Plan {
  const asked = inputs.asked.trim();
  const workload = inputs.workloads.find(({name}) => name.toLowerCase() === asked.toLowerCase());
  if (workload) return planWorkloadOf(workload, [], inputs);
  const {pinned} = resolveAsked(asked, inputs);
  return planModelOf({name: asked, names: [asked], digests: [], pinned, held: undefined}, inputs);
}

function planWorkload(workload: Workload, inputs: PlanInputs): PlanResult {
  const digests = acceptedDigests(workload, inputs.models);
  const plan = planWorkloadOf(workload, digests, inputs);
  return digests.length > 0 ? plan : {kind: 'unaccepted', name: workload.name, accepted: workload.models};
}

function planWorkloadOf(workload: Workload, digests: Plan['digests'], inputs: PlanInputs): Plan {
  const {caller, needs, wish} = inputs;
  const {name, parameters, exact} = workload;
  if (caller && !allows(caller.rights.workloads, [name])) throw lacksRight(caller, `the workload ${name}`);
  if (workload.keys && !(caller && allows(workload.keys, [caller.name]))) {
    throw new Fault('FORBIDDEN', `the workload ${name} is only for certain keys`, {details: {retryable: false}});
  }
  const {policy, from} = choose(inputs, [name], [wish, wishOf('workload', workload.policy)]);
  const allNeeds = [...new Set([...needs, ...workload.needs])];
  return {kind: 'plan', name, digests, needs: allNeeds, policy, policyFrom: from, parameters, exact};
}

function planModel(inputs: PlanInputs): PlanResult {
  const {asked, caller, models} = inputs;
  const first = resolveAsked(asked, inputs);
  // What a key may not use is neither meant by a word that could be several models, nor told as what else there is.
  const {resolution, pinned} =
    first.resolution.kind === 'found' || caller === undefined
      ? first
      : resolveAsked(asked, {...inputs, models: models.filter(model => mayUse(caller, model))});
  if (resolution.kind !== 'found') return resolution;
  const {digests, name} = resolution;
  const found = models.find(({digest}) => digests.includes(digest));
  const names = [...new Set([name, asked, ...(found?.names ?? [])])];
  return planModelOf({name, names, digests, pinned, held: found}, inputs);
}

interface Meant extends Pick<Plan, 'name' | 'digests'> {
  readonly names: readonly string[];
  /** By `model@node`. */
  readonly pinned: Policy | undefined;
  /** The model itself, where some node has it. */
  readonly held: HeldModel | undefined;
}

function planModelOf({name, names, digests, pinned, held}: Meant, inputs: PlanInputs): Plan {
  const {caller, needs, wish} = inputs;
  if (caller && !mayMean(caller, held ? [name, ...held.names] : names, digests)) {
    throw lacksRight(caller, `the model ${name}`);
  }
  const byName: PolicyWish | undefined = pinned && {from: 'name', policy: pinned};
  const {policy, from} = choose(inputs, names, [wish, byName]);
  const known = needsOf(needs, held);
  return {kind: 'plan', name, digests, needs: known, policy, policyFrom: from, parameters: {}, exact: true};
}

/**
 * By any of its own names, or by its digest, as lists of what a key may use and workers judge too. What a client calls
 * it is none of them: people write prefixes that mean nothing.
 */
function mayMean({rights}: Caller, names: readonly string[], digests: Plan['digests']): boolean {
  const areAllowed = digests.length > 0 && digests.every(digest => allows(rights.models, [digest]));
  return areAllowed || allows(rights.models, names);
}

/** llama-server shows tools to every model that chats, so that they are no reason to refuse one that knows none. */
function needsOf(needs: readonly Capability[], model: HeldModel | undefined): readonly Capability[] {
  return model === undefined || model.capabilities.includes('tools') ? needs : withoutTools(needs);
}

function withoutTools(needs: readonly Capability[]): readonly Capability[] {
  return needs.filter(need => need !== 'tools');
}

/** The policy that holds; what the request asks for by itself must be among the rights of its key. */
function choose(inputs: PlanInputs, names: readonly string[], own: readonly (PolicyWish | undefined)[]): PolicyWish {
  const {caller} = inputs;
  const asked = own.find(wish => wish !== undefined && wish.from !== 'workload' && wish.from !== 'context');
  const kind = asked?.policy.placement.kind;
  if (caller && kind !== undefined && kind !== 'auto' && !allows(caller.rights.policies, [kind])) {
    throw lacksRight(caller, `the policy ${kind}`);
  }
  return policyFor(inputs, names, own);
}

/** All wishes together. */
function policyFor(
  {caller, operator, policy}: PlanInputs,
  names: readonly string[],
  own: readonly (PolicyWish | undefined)[],
): PolicyWish {
  const rules = rulesFor(operator, names, caller?.name);
  return choosePolicy([...rules, ...own, wishOf('key', caller?.policy), wishOf('config', policy)]);
}

/** A name as it is; else `model@node`, which is the model as that node has it, pinned there. */
function resolveAsked(
  asked: string,
  inputs: PlanInputs,
): {readonly resolution: Resolution; readonly pinned: Policy | undefined} {
  const {models} = inputs;
  if (asked.trim() === '') return {resolution: resolveUnnamed(inputs), pinned: undefined};
  const fitness = (model: HeldModel): number => fitnessFor(model, inputs);
  const whole = resolveModel(asked, models, fitness);
  const at = asked.lastIndexOf('@');
  const node = asked.slice(at + 1).trim();
  if (whole.kind === 'found' || at < 1 || !isKnownNodeText(node)) return {resolution: whole, pinned: undefined};
  const there = models.filter(({nodes}) => namedNodes(nodes, [node]).length > 0);
  const name = asked.slice(0, at);
  const held = resolveModel(name, there, fitness);
  const resolution = held.kind === 'found' ? held : resolveModel(name, models, fitness);
  return {resolution, pinned: {...automatic, placement: {kind: 'pin', nodes: [node]}}};
}

/**
 * Where it may run comes before what it can do: a model that is out of reach is of no use, however able (R69). Tools
 * count for nothing, because models that know nothing of them are shown them too.
 */
function fitnessFor(model: HeldModel, inputs: PlanInputs): number {
  return 2 * reachFor(model, inputs) + Number(can(model, withoutTools(inputs.needs)));
}

/** 2: where the key and the policy allow it · 1: where the key does · 0: nowhere. */
function reachFor(model: HeldModel, inputs: PlanInputs): 0 | 1 | 2 {
  const {asked, caller, wish} = inputs;
  if (caller && !mayUse(caller, model)) return 0;
  const {policy} = policyFor(inputs, [asked, ...model.names], [wish]);
  return nodesFor(policy, caller, model.nodes).length > 0 ? 2 : 1;
}

function can({capabilities}: HeldModel, needs: readonly Capability[]): boolean {
  return needs.every(need => capabilities.includes(need));
}

/**
 * Who names no model means the only one within reach; of several the only one that can do it, else the one that can
 * write too.
 */
function resolveUnnamed(inputs: PlanInputs): Resolution {
  const {needs} = inputs;
  const models = nearest(inputs);
  const any = resolveModel('', models);
  if (any.kind === 'found') return any;
  for (const wanted of [needs, withoutTools(needs), [...withoutTools(needs), 'completion' as const]]) {
    const able = models.filter(model => can(model, wanted));
    const only = resolveModel('', able);
    if (only.kind === 'found') return only;
  }
  return any;
}

/** The models that may run where the request must; while there is none, those that the key may use; else all. */
function nearest(inputs: PlanInputs): readonly HeldModel[] {
  const reaches = inputs.models.map(model => reachFor(model, inputs));
  const most = Math.max(0, ...reaches);
  return inputs.models.filter((_, index) => reaches[index] === most);
}

function wishOf(from: PolicySource, policy: Policy | undefined): PolicyWish | undefined {
  return policy && {from, policy};
}
