import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault, toDigest} from '@hearsay/core';
import type {Log, LogLevel, ModelReport} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {openGateway} from '../../../test/support/open-gateway.ts';
import {modelReport, scriptedAnswer, scriptedBody} from '../../../test/support/scripted-cluster.ts';
import {chatEvents, scriptedCluster, statusReport} from '../../../test/support/scripted-cluster.ts';
import type {ScriptedCluster} from '../../../test/support/scripted-cluster.ts';
import {startGateway} from './start-gateway.ts';
import type {GatewayConfig} from './start-gateway.ts';
import type {JsonObject} from './json.ts';

const body = JSON.stringify({model: 'tiny', messages: [{role: 'user', content: 'hi'}]});

async function open(
  t: ExecutionContext,
  {models = [modelReport()], ...config}: Partial<GatewayConfig> & {models?: readonly ModelReport[]} = {},
): Promise<{readonly url: string; readonly cluster: ScriptedCluster}> {
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(chatEvents(['hello']))), models);
  const gateway = await openGateway(cluster, config);
  t.teardown(() => gateway[Symbol.asyncDispose]());
  return {url: gateway.url, cluster};
}

async function json(response: Response): Promise<JsonObject> {
  const value: unknown = await response.json();
  return {status: response.status, body: value};
}

for (const path of [
  '/v1/chat/completions/',
  '//v1/chat/completions',
  '/v1//chat/completions/?beta=true',
  '/chat/completions',
]) {
  test(`C28: POST ${path} is served directly`, async t => {
    const {url} = await open(t);
    const response = await fetch(url + path, {method: 'POST', body, redirect: 'error'});
    t.like(await json(response), {status: 200, body: {object: 'chat.completion'}});
  });
}

for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'no type at all', '']) {
  test(`C64: a body of content type ${JSON.stringify(type)} is accepted`, async t => {
    const {url, cluster} = await open(t);
    const response = await fetch(`${url}/v1/chat/completions`, {method: 'POST', body, headers: {'content-type': type}});
    t.is(response.status, 200);
    t.is(cluster.dispatched[0]?.request.model, 'tiny');
  });
}

test('C63: /health and /v1/health answer without any model', async t => {
  const {url, cluster} = await open(t, {models: []});
  for (const path of ['/health', '/v1/health']) {
    t.like(await json(await fetch(url + path)), {status: 200, body: {status: 'ok', node: 'spark'}});
  }
  t.is(cluster.dispatched.length, 0);
});

test('R16: what a browser fetches beside a page runs nothing', async t => {
  const {url, cluster} = await open(t);
  t.is((await fetch(`${url}/sw.js`)).status, 404);
  t.is(cluster.dispatched.length, 0);
});

test('C27: what does not exist is a JSON error that names what does', async t => {
  const {url} = await open(t);
  const {status, body: answer} = await json(await fetch(`${url}/v1/nope`));
  t.is(status, 404);
  t.like(answer, {error: {type: 'invalid_request_error', code: 'not_found'}});
  t.regex(JSON.stringify(answer), /POST \/v1\/chat\/completions/u);
  t.notRegex(JSON.stringify(answer), /\/api\/|\/hearsay\//u, 'only what is near');
  const ollama = await json(await fetch(`${url}/api/nope`));
  t.regex(JSON.stringify(ollama), /serves POST \/api\/chat/u);
});

test('a known path with another method is a 405 that says which is right', async t => {
  const {url} = await open(t);
  const get = await fetch(`${url}/v1/chat/completions`);
  t.is(get.status, 405);
  t.is(get.headers.get('allow'), 'POST, OPTIONS');
  const remove = await fetch(`${url}/v1/models/tiny`, {method: 'DELETE', body});
  t.is(remove.status, 405);
  t.is(remove.headers.get('allow'), 'GET, HEAD, OPTIONS');
  t.is((await fetch(`${url}/v1/completions`, {method: 'HEAD'})).status, 405);
});

const qwen = modelReport({
  name: 'Qwen/Qwen3-4B:Q4_K_M',
  names: ['Qwen/Qwen3-4B:Q4_K_M', 'qwen3'],
  digest: toDigest(`sha256:${'cd'.repeat(32)}`),
  status: 'unloaded',
});

test('the list of models has every model that can be used, loaded or not', async t => {
  const {url} = await open(t, {
    models: [modelReport(), qwen, modelReport({name: 'torn', problem: 'shard 2 is missing'})],
  });
  const {body: list} = await json(await fetch(`${url}/v1/models`));
  t.like(list, {
    object: 'list',
    has_more: false,
    data: [
      {
        id: 'tiny',
        object: 'model',
        owned_by: 'hearsay',
        status: {value: 'loaded'},
        context_length: 8192,
        size: 788_992,
      },
      {id: 'Qwen/Qwen3-4B:Q4_K_M', quantization: 'F16', nodes: ['spark'], status: {value: 'unloaded'}},
    ],
  });
  t.deepEqual(await json(await fetch(`${url}/models`)), {status: 200, body: list});
});

for (const id of ['Qwen/Qwen3-4B:Q4_K_M', 'Qwen%2FQwen3-4B%3AQ4_K_M', 'QWEN3']) {
  test(`C25: /v1/models/${id} is found`, async t => {
    const {url} = await open(t, {models: [modelReport(), qwen]});
    t.like(await json(await fetch(`${url}/v1/models/${id}`)), {status: 200, body: {id: qwen.name, object: 'model'}});
    t.like(await json(await fetch(`${url}/models/${id}/`)), {status: 200, body: {id: qwen.name}});
  });
}

test('an unknown model is a 404 that offers the nearest name', async t => {
  const {url} = await open(t);
  const answer = await json(await fetch(`${url}/v1/models/tinny`));
  t.like(answer, {status: 404, body: {error: {code: 'model_not_found', param: 'model'}}});
  t.regex(JSON.stringify(answer), /did you mean tiny/u);
});

test('the admin API reports status, nodes, engines and models, and stops a model', async t => {
  const {url, cluster} = await open(t);
  t.like(await json(await fetch(`${url}/hearsay/v1/status`)), {status: 200, body: {name: 'spark', mesh: 'home'}});
  t.deepEqual(await json(await fetch(`${url}/hearsay/v1/nodes`)), {status: 200, body: {nodes: []}});
  t.deepEqual(await json(await fetch(`${url}/hearsay/v1/engines`)), {status: 200, body: {engines: []}});
  t.like(await json(await fetch(`${url}/hearsay/v1/models`)), {body: {models: [{name: 'tiny'}]}});
  const stop = (model: string): Promise<Response> =>
    fetch(`${url}/hearsay/v1/stop`, {method: 'POST', body: JSON.stringify({model})});
  t.like(await json(await stop('tiny')), {status: 200, body: {stopped: true}});
  t.deepEqual(await json(await stop('other')), {status: 200, body: {stopped: false, nodes: []}});
  t.like(await json(await stop('')), {status: 400});
  t.deepEqual(cluster.stopped, ['tiny', 'other']);
});

test('a wish for a model that nobody has is no bug, and is not logged as one', async t => {
  const asked = scriptedCluster(() => scriptedAnswer(scriptedBody([])));
  const control = async (): Promise<never> => {
    throw new Fault('MODEL_NOT_FOUND', "model 'other' not found on any node");
  };
  const levels: LogLevel[] = [];
  const log: Log = level => void levels.push(level);
  const deps = {...realEnvironment(), log, cluster: {...asked, control}, status: statusReport};
  await using gateway = await startGateway({host: '127.0.0.1', port: 0, anyPort: false}, deps);
  const answer = await json(await fetch(`${gateway.url}/hearsay/v1/show?model=other`));
  t.like(answer, {status: 404, body: {error: {code: 'model_not_found'}}});
  t.deepEqual(levels, ['debug']);
});

test('C30: errors carry CORS headers too, and a preflight comes before everything', async t => {
  const {url, cluster} = await open(t, {corsOrigins: ['https://chat.example']});
  const headers = {origin: 'https://chat.example'};
  const missing = await fetch(`${url}/v1/nope`, {headers});
  t.is(missing.status, 404);
  t.is(missing.headers.get('access-control-allow-origin'), 'https://chat.example');
  t.regex(missing.headers.get('access-control-expose-headers') ?? '', /x-request-id/u);
  const preflight = await fetch(`${url}/v1/chat/completions`, {
    method: 'OPTIONS',
    headers: {...headers, 'access-control-request-headers': 'x-stainless-os, authorization'},
  });
  t.is(preflight.status, 204);
  t.is(preflight.headers.get('access-control-allow-credentials'), 'true');
  t.is((await fetch(`${url}/completion`, {method: 'OPTIONS', headers})).status, 200, 'as llama-server there');
  t.is(preflight.headers.get('access-control-allow-headers'), 'x-stainless-os, authorization');
  t.is(cluster.dispatched.length, 0);
});

test('C31: a foreign page runs nothing and is told which setting would let it in', async t => {
  const {url, cluster} = await open(t);
  const headers = {origin: 'https://evil.example'};
  const answer = await fetch(`${url}/v1/chat/completions`, {method: 'POST', body, headers});
  t.is(answer.status, 403);
  t.is(answer.headers.get('access-control-allow-origin'), null);
  t.regex(await answer.text(), /gateway\.cors_origins/u);
  t.is(cluster.dispatched.length, 0);
});
