import test from 'ava';
import type {EngineReport} from '@hearsay/core';
import {node} from '../../../../test/support/builders.ts';
import {modelReport} from '../../../../test/support/scripted-cluster.ts';
import {roomyNodes} from './roomy-nodes.ts';

const report = modelReport({contextMax: 32_768});
const model = {kind: 'known', asked: 'tiny', target: 'tiny', report, preset: undefined} as const;

function engine(letter: string, context: number, state = 'ready'): EngineReport {
  return {
    name: 'tiny',
    digest: report.digest,
    sizeBytes: 1,
    processor: 'llama-server',
    context,
    state,
    startedSecondsAgo: 1,
    node: 'local',
    nodeId: node(letter),
    nodeName: letter,
    untilSeconds: undefined,
    slots: 4,
    busy: 0,
    queued: 0,
    failure: undefined,
  };
}

const small = engine('a', 4096);
const large = engine('b', 16_384);

test('R106: a node whose engine has the context is preferred to one whose engine has not', t => {
  const policy = roomyNodes({model, contextTokens: 8192}, [small, large]);
  t.deepEqual(policy?.placement, {kind: 'prefer', nodes: [large.nodeId]});
});

test('num_ctx says nothing where all engines have it, none has it, or it was not given', t => {
  t.is(roomyNodes({model, contextTokens: 2048}, [small, large]), undefined);
  t.is(roomyNodes({model, contextTokens: 20_000}, [small, large]), undefined);
  t.is(roomyNodes({model, contextTokens: undefined}, [small, large]), undefined);
  t.is(roomyNodes({model, contextTokens: 8192}, [large, engine('c', 4096, 'loading')]), undefined);
  t.is(roomyNodes({model, contextTokens: 8192}, []), undefined);
});

test('more than the model was made for is no more than that', t => {
  const limited = {...model, report: {...report, contextMax: 16_384}};
  t.not(roomyNodes({model: limited, contextTokens: 1_000_000}, [small, large]), undefined);
});
