import test from 'ava';
import {engineReport, modelReport} from '../../../../test/support/scripted-cluster.ts';
import {roomyNodes} from './roomy-nodes.ts';

const report = modelReport({contextMax: 32_768});
const model = {kind: 'known', asked: 'tiny', target: 'tiny', report, preset: undefined} as const;

const small = engineReport('a', {context: 4096});
const large = engineReport('b', {context: 16_384});

test('R106: a node whose engine has the context is preferred to one whose engine has not', t => {
  const policy = roomyNodes({model, contextTokens: 8192}, [small, large]);
  t.deepEqual(policy?.placement, {kind: 'prefer', nodes: [large.nodeId]});
});

test('num_ctx says nothing where all engines have it, none has it, or it was not given', t => {
  t.is(roomyNodes({model, contextTokens: 2048}, [small, large]), undefined);
  t.is(roomyNodes({model, contextTokens: 20_000}, [small, large]), undefined);
  t.is(roomyNodes({model, contextTokens: undefined}, [small, large]), undefined);
  t.is(
    roomyNodes({model, contextTokens: 8192}, [large, engineReport('c', {context: 4096, state: 'loading'})]),
    undefined,
  );
  t.is(roomyNodes({model, contextTokens: 8192}, []), undefined);
});

test('more than the model was made for is no more than that', t => {
  const limited = {...model, report: {...report, contextMax: 16_384}};
  t.not(roomyNodes({model: limited, contextTokens: 1_000_000}, [small, large]), undefined);
});
