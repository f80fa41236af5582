import test from 'ava';
import type {ExecutionContext} from 'ava';
import type {EngineReport} from '@hearsay/core';
import {digest, node} from '../../../test/support/builders.ts';
import {realEnvironment} from '../../../test/support/environment.ts';
import {modelReport, scriptedAnswer, scriptedBody} from '../../../test/support/scripted-cluster.ts';
import {scriptedCluster, statusReport} from '../../../test/support/scripted-cluster.ts';
import {startKeyRing} from './key-ring.ts';
import {startGateway} from './start-gateway.ts';

const secretModel = modelReport({name: 'secretive', names: ['secretive'], digest: digest('c')});

function engine({name, digest: of}: Pick<EngineReport, 'name' | 'digest'>, nodeName: string): EngineReport {
  return {
    name,
    digest: of,
    sizeBytes: 1,
    processor: 'llama-server',
    context: 2048,
    state: 'ready',
    startedSecondsAgo: 1,
    node: 'elsewhere:1',
    nodeId: node('B'),
    nodeName,
    untilSeconds: undefined,
    slots: 1,
    busy: 0,
    queued: 0,
    failure: undefined,
  };
}

/** Both models are loaded on a node that is not this one. */
const engines = [engine(modelReport(), 'other'), engine(secretModel, 'other')];

interface Asking {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A gateway with two models, and a key for one of them. */
async function open(t: ExecutionContext, rights: object, models = [modelReport(), secretModel]) {
  const script = () => scriptedAnswer(scriptedBody(['{"input_tokens":7}']), {contentType: 'application/json'});
  const cluster = {...scriptedCluster(script, models), engines: () => engines};
  const store = {read: async () => undefined, write: async () => {}};
  const keyRing = await startKeyRing(store, realEnvironment());
  const {secret} = await keyRing.create({name: 'notes', ...rights});
  const config = {host: '127.0.0.1', port: 0, anyPort: false};
  const gateway = await startGateway(config, {...realEnvironment(), cluster, status: statusReport, keyRing});
  t.teardown(() => gateway[Symbol.asyncDispose]());
  const ask = async (path: string, init: Asking = {}) =>
    fetch(gateway.url + path, {...init, headers: {...init.headers, authorization: `Bearer ${secret}`}});
  return {cluster, ask};
}

const messages = [{role: 'user', content: 'hi'}];
const post = (body: object): Asking => ({method: 'POST', body: JSON.stringify(body)});

for (const [path, init] of [
  ['/v1/models', {}],
  ['/v1/models/secretiv', {}],
  ['/api/tags', {}],
  ['/api/ps', {}],
  ['/api/show', post({model: 'secretiv'})],
  ['/metrics', {}],
  ['/', {headers: {accept: 'text/html'}}],
  ['/v1/messages/count_tokens', post({model: 'secretiv', messages})],
] as const) {
  test(`S69: ${path} tells a key of no model that is not for it`, async t => {
    const {ask} = await open(t, {models: ['tiny']});
    const text = await (await ask(path, init)).text();
    t.notRegex(text, /secretive/u);
  });
}

test('S69: a key is told of the engines that it may use', async t => {
  const {ask} = await open(t, {models: ['tiny']});
  t.regex(await (await ask('/metrics')).text(), /^hearsay_engine_slots\{model="tiny",node="other"/mu);
  t.regex(await (await ask('/api/ps')).text(), /"tiny:latest".*"other"/u);
  const elsewhere = await open(t, {nodes: ['spark']});
  for (const path of ['/metrics', '/api/ps']) t.notRegex(await (await elsewhere.ask(path)).text(), /other/u, path);
});

test('S69: of a model a key is told the nodes that are for it, and whether one of these has it loaded', async t => {
  const nodes = [
    {id: node('A'), name: 'here', local: true},
    {id: node('B'), name: 'other', local: false},
  ];
  const model = modelReport({nodes, status: 'loaded'});
  const seen = async (allowed: readonly string[] | undefined): Promise<readonly string[]> => {
    const {ask} = await open(t, allowed === undefined ? {} : {nodes: allowed}, [model]);
    const {data}: {data: {nodes: string[]; status: {value: string}}[]} = await (await ask('/v1/models')).json();
    for (const [path, init] of [
      ['/v1/models/tiny', {}],
      ['/api/tags', {}],
      ['/api/show', post({model: 'tiny'})],
    ] as const) {
      const text = await (await ask(path, init)).text();
      t.is(text.includes('"other"'), allowed?.includes('other') !== false, path);
    }
    return data.flatMap(({nodes: names, status}) => [...names, status.value]);
  };
  t.deepEqual(await seen(undefined), ['here', 'other', 'loaded']);
  t.deepEqual(await seen(['here']), ['here', 'unloaded']);
  t.deepEqual(await seen(['other']), ['other', 'loaded']);
});

test('S69: tokens are counted for a key with the models and on the nodes that it may use', async t => {
  const count = async (rights: object, model: string): Promise<readonly [status: number, counted: number]> => {
    const {ask, cluster} = await open(t, rights);
    const {status} = await ask('/v1/messages/count_tokens', post({model, messages}));
    return [status, cluster.dispatched.length];
  };
  t.deepEqual(await count({models: ['tiny']}, 'tiny'), [200, 1]);
  t.deepEqual(await count({models: ['tiny']}, 'secretive'), [404, 0]);
  t.deepEqual(await count({nodes: ['spark']}, 'tiny'), [200, 0], 'estimated, because the engine is elsewhere');
});
