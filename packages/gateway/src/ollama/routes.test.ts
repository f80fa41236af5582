import test from 'ava';
import type {ExecutionContext} from 'ava';
import type {ModelReport} from '@hearsay/core';
import {openGateway} from '../../../../test/support/open-gateway.ts';
import {digest} from '../../../../test/support/builders.ts';
import {chatEvents, modelReport, scriptedAnswer} from '../../../../test/support/scripted-cluster.ts';
import {scriptedBody, scriptedCluster} from '../../../../test/support/scripted-cluster.ts';

async function open(t: ExecutionContext, models: readonly ModelReport[] = [modelReport()]) {
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(chatEvents(['hi']))), models);
  const gateway = await openGateway(cluster, {contextTokens: 4096});
  t.teardown(() => gateway[Symbol.asyncDispose]());
  return {cluster, url: gateway.url};
}

async function json(response: Response): Promise<Record<string, unknown>> {
  const body: Record<string, unknown> = await response.json();
  return body;
}

const body = JSON.stringify({model: 'tiny', messages: [{role: 'user', content: 'hi'}], stream: false});

test('R16: / is what clients look for, also to HEAD, and a page for people; neither runs anything', async t => {
  const {url, cluster} = await open(t);
  const plain = await fetch(url);
  t.is(plain.headers.get('content-type'), 'text/plain; charset=utf-8');
  t.is(await plain.text(), 'Ollama is running');
  t.is((await fetch(url, {method: 'HEAD'})).status, 200);
  const page = await fetch(url, {headers: {accept: 'text/html,application/xhtml+xml;q=0.9'}});
  t.is(page.headers.get('content-type'), 'text/html; charset=utf-8');
  t.regex(await page.text(), /hearsay is running[\s\S]*spark[\s\S]*tiny/u);
  t.is(cluster.dispatched.length, 0);
});

test('C61: the version is bare and recent, and our own is beside it', async t => {
  const {url} = await open(t);
  const {version, hearsay} = await json(await fetch(`${url}/api/version`));
  t.regex(String(version), /^\d+\.\d+\.\d+$/u);
  t.is(hearsay, '0.1.0');
  t.is((await fetch(`${url}/api/version`, {method: 'HEAD'})).status, 200);
});

test('S54: tags has every field that strict clients read, and an empty list is a list', async t => {
  const {url} = await open(t);
  const {models} = await json(await fetch(`${url}/api/tags`));
  t.deepEqual(models, [
    {
      name: 'tiny:latest',
      model: 'tiny:latest',
      modified_at: Reflect.get(Object(Reflect.get(Object(models), '0')), 'modified_at'),
      size: 788_992,
      digest: 'ab'.repeat(32),
      details: {
        parent_model: '',
        format: 'gguf',
        family: 'llama',
        families: ['llama'],
        parameter_size: '394K',
        quantization_level: 'F16',
        context_length: 8192,
      },
      capabilities: ['completion'],
      nodes: ['spark'],
    },
  ]);
  t.true(Date.parse(String(Reflect.get(Object(Reflect.get(Object(models), '0')), 'modified_at'))) > 0);
  const none = await open(t, []);
  t.deepEqual(await json(await fetch(`${none.url}/api/tags`)), {models: []});
  t.deepEqual(await json(await fetch(`${none.url}/api/ps`)), {models: []});
});

test('C61: show tells the context that one request gets, in all the places where clients look', async t => {
  const {url} = await open(t);
  for (const asked of [{model: 'tiny'}, {name: 'TINY:latest'}]) {
    const shown = await json(await fetch(`${url}/api/show`, {method: 'POST', body: JSON.stringify(asked)}));
    t.like(shown['model_info'], {
      'general.architecture': 'llama',
      'general.parameter_count': 393_856,
      'general.file_type': 1,
      'general.basename': 'tiny',
      'llama.context_length': 4096,
    });
    t.regex(String(shown['parameters']), /^num_ctx +4096$/mu);
  }
  const copilot = await fetch(`${url}/api/show`, {
    method: 'POST',
    body: '{"model":"tiny:latest"}',
    headers: {'user-agent': 'GitHubCopilotChat/0.30'},
  });
  t.like(await json(copilot), {model_info: {'general.basename': 'tiny:latest'}});
});

for (const type of ['application/x-www-form-urlencoded', 'text/plain', '']) {
  test(`C64: a body of content type ${JSON.stringify(type)} is read`, async t => {
    const {url} = await open(t);
    const answer = await fetch(`${url}/api/chat`, {method: 'POST', body, headers: {'content-type': type}});
    t.like(await json(answer), {message: {content: 'hi'}, done: true});
  });
}

for (const path of ['/api/chat/', '//api/chat', '/api/chat?ts=1']) {
  test(`C28: POST ${path} is served directly`, async t => {
    const {url} = await open(t);
    t.is((await fetch(url + path, {method: 'POST', body, redirect: 'error'})).status, 200);
  });
}

test('a damaged file of this node is named with its reason, and is not merely unknown', async t => {
  const {url} = await open(t, [
    modelReport(),
    {...modelReport(), name: 'torn', names: ['torn'], digest: digest('c'), problem: 'it is incomplete'},
  ]);
  for (const path of ['chat', 'generate', 'embed', 'show']) {
    const answer = await fetch(`${url}/api/${path}`, {
      method: 'POST',
      body: '{"model": "torn", "prompt": "x", "input": "x"}',
    });
    t.is(answer.status, 500, path);
    t.is(answer.headers.get('x-should-retry'), 'false');
    t.deepEqual(await json(answer), {error: "model 'torn' cannot be used: it is incomplete"});
  }
});

for (const [what, text, message] of [
  ['an empty body', '', 'missing request body'],
  ['a list', '[]', 'the body is not a JSON object'],
  ['half an object', '{"model":', 'the body is not a JSON object: Unexpected end of JSON input'],
  ['a number for stream', '{"model":"tiny","stream":1}', 'stream is neither true nor false'],
] as const) {
  for (const path of ['chat', 'generate', 'embed', 'show', 'pull', 'create', 'copy']) {
    test(`POST /api/${path} with ${what} is a 400 of Ollama's shape`, async t => {
      const {url} = await open(t);
      const answer = await fetch(`${url}/api/${path}`, {method: 'POST', body: text});
      t.is(answer.status, 400);
      t.true(answer.headers.get('content-type')?.startsWith('application/json'));
      t.deepEqual(await json(answer), {error: message});
    });
  }
}

test('a pull that names no model is a 400, and one of an unknown model an error in its stream', async t => {
  const {url} = await open(t);
  const pull = async (wish: object) => fetch(`${url}/api/pull`, {method: 'POST', body: JSON.stringify(wish)});
  t.is((await pull({})).status, 400);
  const unknown = await pull({model: 'nope'});
  t.is(unknown.status, 200);
  t.regex(await unknown.text(), /^\{"error":"pull model manifest: file does not exist: .*models\.folders.*"\}\n$/u);
});

test('C27: what does not exist, or not by this method, is an error of the same shape', async t => {
  const {url} = await open(t);
  for (const [method, path, status] of [
    ['GET', '/api/nope', 404],
    ['GET', '/api/chat', 405],
    ['POST', '/api/tags', 405],
    ['POST', '/api/push', 501],
  ] as const) {
    const answer = await fetch(url + path, {method});
    t.is(answer.status, status, path);
    t.is(typeof (await json(answer))['error'], 'string', path);
  }
});

test('without a data folder a name cannot be made, and the client is told', async t => {
  const {url} = await open(t);
  const answer = await fetch(`${url}/api/copy`, {method: 'POST', body: '{"source":"tiny","destination":"b"}'});
  t.is(answer.status, 400);
  t.regex(String((await json(answer))['error']), /no data folder/u);
});

test('loading runs one empty request, and unloading stops the engine', async t => {
  const {url, cluster} = await open(t);
  const ask = async (fields: object) =>
    json(await fetch(`${url}/api/generate`, {method: 'POST', body: JSON.stringify({model: 'tiny', ...fields})}));
  t.like(await ask({}), {response: '', done: true, done_reason: 'load'});
  t.like(cluster.dispatched[0]?.request, {endpoint: '/v1/completions'});
  t.like(await ask({keep_alive: 0}), {response: '', done: true, done_reason: 'unload'});
  t.deepEqual(cluster.stopped, ['tiny']);
  t.is(cluster.dispatched.length, 1);
});

test('C57, R103: keep_alive goes with every kind of request, and a bad one is refused', async t => {
  const embedding = JSON.stringify({data: [{embedding: [1, 2]}], usage: {prompt_tokens: 1}});
  const cluster = scriptedCluster(
    ({endpoint}) =>
      endpoint === '/v1/embeddings'
        ? scriptedAnswer(scriptedBody([embedding]), {contentType: 'application/json'})
        : scriptedAnswer(scriptedBody(chatEvents(['hi']))),
    [modelReport({capabilities: ['chat', 'completion', 'embeddings']})],
  );
  const gateway = await openGateway(cluster);
  t.teardown(() => gateway[Symbol.asyncDispose]());
  const ask = async (path: string, fields: object) =>
    (await fetch(`${gateway.url}/api/${path}`, {method: 'POST', body: JSON.stringify({model: 'tiny', ...fields})}))
      .status;
  const forms = [
    ['chat', {messages: [{role: 'user', content: 'x'}]}],
    ['generate', {prompt: 'x'}],
    ['generate', {prompt: ''}],
    ['embed', {input: 'x'}],
    ['embeddings', {prompt: 'x'}],
  ] as const;
  for (const [path, fields] of forms) {
    t.is(await ask(path, {...fields, keep_alive: '10m'}), 200);
    t.is(cluster.dispatched.at(-1)?.request.keepAliveMs, 600_000, path);
    t.is(await ask(path, fields), 200);
    t.is(cluster.dispatched.at(-1)?.request.keepAliveMs, undefined, path);
    t.is(await ask(path, {...fields, keep_alive: 'soon'}), 400, path);
  }
});

test('blobs: a file that is a model of the mesh is there already, and without a data folder no other can be brought', async t => {
  const {url} = await open(t);
  const [known, other] = [`${url}/api/blobs/sha256:${'ab'.repeat(32)}`, `${url}/api/blobs/sha256:${'cd'.repeat(32)}`];
  t.is((await fetch(known, {method: 'HEAD'})).status, 200);
  t.is((await fetch(known, {method: 'POST', body: 'x'})).status, 200);
  t.is((await fetch(other, {method: 'HEAD'})).status, 404);
  const refused = await fetch(other, {method: 'POST', body: 'x'});
  t.is(refused.status, 400);
  t.regex(String((await json(refused))['error']), /no data folder/u);
});
