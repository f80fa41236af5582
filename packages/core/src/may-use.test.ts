import test from 'ava';
import {modelReport} from '../../../test/support/scripted-cluster.ts';
import type {Caller, Rights} from './caller.ts';
import {mayUse} from './may-use.ts';

const all = {models: undefined, workloads: undefined, nodes: undefined, policies: undefined};
const caller = (rights: Partial<Rights>): Caller => ({
  name: 'notes',
  rights: {...all, ...rights},
  policy: undefined,
});

test('S69: a key sees the models that it may use, by any of their names, on a node that it may use', t => {
  const report = modelReport();
  t.true(mayUse(caller({}), report));
  t.true(mayUse(caller({models: [report.name]}), report));
  t.true(mayUse(caller({models: [report.names.at(-1) ?? '']}), report));
  t.false(mayUse(caller({models: ['another']}), report));
  const [node] = report.nodes;
  t.true(mayUse(caller({nodes: [node?.name ?? '']}), report));
  t.false(mayUse(caller({nodes: ['elsewhere']}), report));
});
