import {Fault, formatPolicy} from '@hearsay/core';
import test from 'ava';
import {parse} from 'smol-toml';
import {parseWorkloads} from './workload-settings.ts';

const workloads = (toml: string) => parseWorkloads(parse(toml)['workloads'], '/config.toml');

test('S62, S64: a workload with everything that can be said about it', t => {
  const [workload] = workloads(`
    [workloads.summarise]
    models = ["qwen3:8b", "sha256:0123", "llama-3*"]
    quants = ["Q4_K_M"]
    needs = ["chat", "tools"]
    context = 16384
    policy = "prefer=spark;exclude=mini"
    parameters = {temperature = 0.2}
    keys = ["notes"]
    reassign = "accepted"
  `);
  t.like(workload, {
    name: 'summarise',
    quants: ['Q4_K_M'],
    contextMin: 16_384,
    parameters: {temperature: 0.2},
    keys: ['notes'],
    exact: false,
  });
  t.is(workload?.policy && formatPolicy(workload.policy), 'prefer=spark;exclude=mini');
});

test('S65: unless it says otherwise, a request is only ever moved to the same bytes', t => {
  t.like(workloads('[workloads.x]\nmodels = ["a"]')[0], {exact: true, keys: undefined, policy: undefined, quants: []});
  t.deepEqual(workloads(''), []);
});

const mistakes: readonly (readonly [string, RegExp])[] = [
  ['workloads = 3', /workloads in \/config\.toml must be tables/u],
  ['[workloads.x]\nmodels = []', /workloads\.x\.models .* at least one model/u],
  ['[workloads.x]\n', /workloads\.x\.models .* must be a list of names/u],
  ['[workloads.x]\nmodels = ["a"]\nmodel = "b"', /unknown key `workloads\.x\.model`; there are models, quants/u],
  ['[workloads.x]\nmodels = ["a"]\npolicy = "fast"', /workloads\.x\.policy .* must be a policy; a policy is auto/u],
  ['[workloads.x]\nmodels = ["a"]\nneeds = ["wings"]', /workloads\.x\.needs\.0 .* must be a list of chat/u],
  ['[workloads.x]\nmodels = ["a"]\nreassign = "any"', /workloads\.x\.reassign .* exact or accepted/u],
  ['[workloads.x]\nmodels = ["a"]\nparameters = {model = "b"}', /parameters .* without model/u],
];
for (const [toml, message] of mistakes) {
  test(`${JSON.stringify(toml)} is refused by name`, t => {
    t.throws(() => workloads(toml), {instanceOf: Fault, message});
  });
}
