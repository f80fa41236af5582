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
async function open(t: ExecutionContext, rights: object) {
  const script = () => scriptedAnswer(scriptedBody(['{"input_tokens":7}']), {contentType: 'application/json'});
  const cluster = {...scriptedCluster(script, [modelReport(), secretModel]), engines: () => engines};
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
