import test from 'ava';
import {digest, node} from '../../../test/support/builders.ts';
import {Fault} from './fault.ts';
import {changeOperator, idleOperator} from './operator.ts';
import {planRequest} from './plan-request.ts';
import type {Plan, PlanInputs} from './plan-request.ts';
import {formatPolicy, parsePolicy} from './policy.ts';
import type {HeldModel, Workload} from './workload.ts';
import type {Caller, Rights} from './caller.ts';

function held(name: string, letter: string, nodes: readonly string[], changes: Partial<HeldModel> = {}): HeldModel {
  return {
    digest: digest(letter),
    names: [name],
    demo: false,
    local: false,
    holders: nodes.length,
    nodes: nodes.map(each => ({id: node(each), name: each, local: false})),
    quant: 'Q8_0',
    capabilities: ['chat', 'completion'],
    contextMax: 8192,
    ...changes,
  };
}

const summarise: Workload = {
  name: 'summarise',
  models: ['qwen', 'llama*'],
  quants: [],
  needs: ['chat'],
  contextMin: 0,
  policy: parsePolicy('prefer=B'),
  parameters: {temperature: 0.2},
  keys: undefined,
  exact: true,
};

const noRights: Rights = {models: undefined, workloads: undefined, nodes: undefined, policies: undefined};
const caller = (rights: Partial<Rights>): Caller => ({
  name: 'notes',
  rights: {...noRights, ...rights},
  policy: undefined,
});

function plan(asked: string, changes: Partial<PlanInputs> = {}): Plan {
  const result = planRequest({
    asked,
    needs: [],
    wish: undefined,
    caller: undefined,
    models: [
      held('llama-big', 'a', ['A']),
      held('qwen', 'b', ['A', 'B']),
      held('twin', 'c', ['A']),
      held('twin', 'd', ['B', 'C']),
    ],
    workloads: [summarise],
    operator: idleOperator,
    policy: undefined,
    ...changes,
  });
  if (result.kind !== 'plan') throw new Error(`no plan: ${result.kind}`);
  return result;
}

const policyOf = ({policy, policyFrom}: Plan): string => `${policyFrom}: ${formatPolicy(policy)}`;

test('S62, S64, S66: a workload stands for every accepted model, best first, with its policy', t => {
  const planned = plan('Summarise');
  t.like(planned, {name: 'summarise', digests: [digest('b'), digest('a')], needs: ['chat'], exact: true});
  t.is(policyOf(planned), 'workload: prefer=B');
  t.deepEqual(planned.parameters, {temperature: 0.2});
});

test('S64: what a workload needs limits its artifacts: quant, context and capabilities', t => {
  const wants = (changes: Partial<Workload>) =>
    planRequest({...inputs, workloads: [{...summarise, models: ['*'], ...changes}]});
  const inputs: PlanInputs = {
    asked: 'summarise',
    needs: [],
    wish: undefined,
    caller: undefined,
    models: [
      held('small', 'a', ['A'], {quant: 'Q4_K_M', contextMax: 4096}),
      held('eyes', 'b', ['A'], {capabilities: ['chat', 'vision']}),
    ],
    workloads: [],
    operator: idleOperator,
    policy: undefined,
  };
  t.like(wants({quants: ['q4_k_m']}), {digests: [digest('a')]});
  t.like(wants({contextMin: 8000}), {digests: [digest('b')]});
  t.like(wants({needs: ['vision']}), {digests: [digest('b')]});
  t.like(wants({quants: ['F32']}), {kind: 'unaccepted', accepted: ['*']});
});

test('model@node is the model as that node has it, pinned there', t => {
  const planned = plan('twin@A');
  t.is(policyOf(planned), 'name: pin=A');
  t.deepEqual(planned.digests, [digest('c')]);
  t.deepEqual(plan('twin@C').digests, [digest('d')]);
  t.is(policyOf(plan('qwen@nowhere')), 'name: pin=nowhere');
});

test('of two models of one name the one that hears is asked to listen, and none is refused for want of tools', t => {
  const models = [
    held('twin', 'c', ['A'], {local: true, capabilities: ['chat', 'tools']}),
    held('twin', 'd', ['B'], {capabilities: ['chat', 'audio']}),
  ];
  t.deepEqual(plan('twin', {models, needs: ['chat']}).digests, [digest('c')]);
  t.deepEqual(plan('twin', {models, needs: ['chat', 'audio']}).digests, [digest('d')]);
  t.like(plan('twin', {models, needs: ['chat', 'audio', 'tools']}), {digests: [digest('d')], needs: ['chat', 'audio']});
  t.deepEqual(plan('twin', {models: models.slice(1), needs: ['tools']}).digests, [digest('d')]);
});

test('R69: of two models of one name the one is meant that may run where the request must, then the able one', t => {
  const models = [
    held('twin', 'c', ['A'], {local: true, capabilities: ['chat']}),
    held('twin', 'd', ['B'], {capabilities: ['chat', 'tools', 'audio']}),
  ];
  const wish = (text: string): PlanInputs['wish'] => ({from: 'header', policy: parsePolicy(text)});
  const meant = (changes: Partial<PlanInputs>): Plan => plan('twin', {models, ...changes});
  const [here, there] = [{digests: [digest('c')]}, {digests: [digest('d')]}];
  const needs = ['chat', 'audio'] as const;
  t.like(meant({needs: ['chat', 'tools']}), here, 'tools are shown to every model');
  t.like(meant({needs, wish: wish('pin=A')}), here);
  t.like(meant({wish: wish('pin=B')}), there);
  t.like(meant({wish: wish('exclude=A')}), there);
  t.like(meant({wish: wish('prefer=B')}), here, 'a wish that can be missed means nothing else');
  t.like(meant({needs, wish: wish('pin=nowhere')}), there);
  t.like(meant({policy: parsePolicy('pin=B')}), there);
  t.like(meant({needs, caller: caller({nodes: ['A']})}), here);
  t.like(meant({needs, caller: caller({models: [digest('c')]})}), here);
  t.like(meant({caller: caller({models: [digest('d')]})}), there);
  t.like(meant({needs, caller: caller({models: [digest('c')]}), wish: wish('pin=B')}), here);
  const rule = {subject: 'twin', policy: parsePolicy('pin=B')};
  t.like(meant({operator: changeOperator(idleOperator, {kind: 'set rule', rule})}), there);
});

test('S94: the same name under another policy: header, then name, then key, then config', t => {
  const all = {
    wish: {from: 'header', policy: parsePolicy('pin=H')},
    caller: {...caller({}), policy: parsePolicy('pin=K')},
    policy: parsePolicy('pin=D'),
  } as const;
  t.is(policyOf(plan('qwen@N', all)), 'header: pin=H');
  t.is(policyOf(plan('qwen@N', {...all, wish: undefined})), 'name: pin=N');
  t.is(policyOf(plan('qwen', {...all, wish: undefined})), 'key: pin=K');
  t.is(policyOf(plan('qwen', {policy: all.policy})), 'config: pin=D');
  t.is(policyOf(plan('summarise', {...all, wish: undefined})), 'workload: prefer=B');
  t.is(policyOf(plan('qwen')), 'default: auto');
});

test('R106: a wish for a node with more context gives way to every policy, and needs no right', t => {
  const wish = {from: 'context', policy: parsePolicy('prefer=B')} as const;
  t.is(policyOf(plan('qwen', {wish})), 'context: prefer=B');
  t.is(policyOf(plan('qwen', {wish, caller: caller({policies: ['auto']})})), 'context: prefer=B');
  t.is(policyOf(plan('qwen', {wish, policy: parsePolicy('pin=D')})), 'config: pin=D');
  t.is(policyOf(plan('qwen', {wish, caller: {...caller({}), policy: parsePolicy('pin=K')}})), 'key: pin=K');
  t.is(policyOf(plan('qwen@A', {wish})), 'name: pin=A');
  t.throws(() => plan('qwen@A', {wish, caller: caller({policies: ['auto']})}), {message: /the policy pin/u});
});

test('S95: what the owner has set for a model wins over the request', t => {
  const rule = {subject: 'qwen', policy: parsePolicy('pin=spark')};
  const operator = changeOperator(idleOperator, {kind: 'set rule', rule});
  t.is(policyOf(plan('qwen@B', {operator})), 'operator: pin=spark');
  t.is(policyOf(plan('llama-big', {operator})), 'default: auto');
});

const wrongs: readonly (readonly [string, Partial<Rights>, RegExp, Partial<PlanInputs>])[] = [
  ['qwen', {models: ['llama*']}, /the model qwen/u, {}],
  ['summarise', {workloads: []}, /the workload summarise/u, {}],
  ['qwen@B', {policies: ['auto', 'prefer']}, /the policy pin/u, {}],
  ['qwen', {policies: ['auto']}, /the policy pin/u, {wish: {from: 'provider', policy: parsePolicy('pin=B')}}],
];
for (const [asked, rights, message, changes] of wrongs) {
  test(`S67: a key without a right for ${asked} is told which: ${message.source}`, t => {
    const error = t.throws(() => plan(asked, {caller: caller(rights), ...changes}), {instanceOf: Fault, message});
    t.is(error instanceof Fault ? error.code : '', 'FORBIDDEN');
  });
}

test('a key with the right is let through, and the policy of a workload needs no right', t => {
  t.is(plan('llama-big', {caller: caller({models: ['llama*']})}).name, 'llama-big');
  t.is(plan('llama-big', {caller: caller({models: [digest('a')]})}).name, 'llama-big', 'as it is listed for it');
  t.throws(() => plan('llama-big', {caller: caller({models: [digest('b')]})}), {instanceOf: Fault});
  t.throws(() => plan('library/llama-big', {caller: caller({models: ['library/*']})}), {instanceOf: Fault});
  t.is(policyOf(plan('summarise', {caller: caller({policies: ['auto']})})), 'workload: prefer=B');
});

test('S69: a key is asked back with the models that it may use, and no others', t => {
  const asking = (asked: string, rights: Partial<Rights>) =>
    planRequest({
      asked,
      needs: ['chat'],
      wish: undefined,
      caller: caller(rights),
      models: [held('open-one', 'a', ['A']), held('open-two', 'b', ['A']), held('secret', 'c', ['B'])],
      workloads: [],
      operator: idleOperator,
      policy: undefined,
    });
  t.deepEqual(asking('', {models: ['open-*']}), {kind: 'unnamed', known: ['open-one', 'open-two']});
  t.deepEqual(asking('', {nodes: ['A']}), {kind: 'unnamed', known: ['open-one', 'open-two']});
  t.deepEqual(asking('secre', {models: ['open-*']}), {kind: 'unknown', close: []});
  t.deepEqual(asking('secre', {}), {kind: 'unknown', close: ['secret']});
  t.like(asking('', {models: ['open-two']}), {kind: 'plan', name: 'open-two'}, 'the only one there is for it');
});

test('a workload that is only for certain keys is for nobody else', t => {
  const workloads = [{...summarise, keys: ['notes']}];
  t.is(plan('summarise', {workloads, caller: caller({})}).name, 'summarise');
  t.throws(() => plan('summarise', {workloads}), {instanceOf: Fault, message: /only for certain keys/u});
});

const writer = held('writer', 'e', ['A']);
const user = held('user', 'f', ['A'], {capabilities: ['chat', 'completion', 'tools']});
const reader = held('reader', 'a', ['A'], {capabilities: ['embeddings']});
const ranker = held('ranker', 'b', ['A'], {capabilities: ['rerank']});

const unnamed: readonly (readonly [needs: PlanInputs['needs'], models: readonly HeldModel[], name: string])[] = [
  [['chat'], [writer], 'writer'],
  [['embeddings'], [writer], 'writer'],
  [['chat'], [writer, reader, ranker], 'writer'],
  [['embeddings'], [writer, reader, ranker], 'reader'],
  [[], [writer, reader, ranker], 'writer'],
  [['chat', 'tools'], [writer, user, reader], 'user'],
  [['chat', 'tools'], [writer, reader], 'writer'],
];
for (const [needs, models, name] of unnamed) {
  const among = models.map(model => model.names[0]).join(', ');
  test(`no name, with a need for ${needs.join(' and ') || 'nothing'}, means ${name} of ${among}`, t => {
    t.is(plan('', {needs, models}).name, name);
  });
}

test('no name means a model that the key may use, on a node that the policy allows', t => {
  const models = [writer, held('vectors', 'b', ['B'], {capabilities: ['embeddings']})];
  const needs = ['embeddings'] as const;
  t.is(plan('', {models, needs}).name, 'vectors');
  t.is(plan('', {models, needs, caller: caller({models: ['writer']})}).name, 'writer');
  t.is(plan('', {models, needs, caller: caller({nodes: ['A']})}).name, 'writer');
  t.is(plan('', {models, needs, wish: {from: 'header', policy: parsePolicy('pin=A')}}).name, 'writer');
});

test('where several models could be meant, no name is a question back', t => {
  const nobody = {wish: undefined, caller: undefined, workloads: [], operator: idleOperator, policy: undefined};
  t.like(planRequest({asked: ' ', needs: ['chat'], models: [writer, user], ...nobody}), {kind: 'unnamed'});
});

test('S70: tools are needed of a model that knows them, and otherwise left to llama-server', t => {
  const models = [writer, user];
  t.deepEqual(plan('user', {needs: ['chat', 'tools'], models}).needs, ['chat', 'tools']);
  t.deepEqual(plan('writer', {needs: ['chat', 'tools'], models}).needs, ['chat']);
  t.deepEqual(plan('writer', {needs: ['chat', 'vision'], models}).needs, ['chat', 'vision']);
});
