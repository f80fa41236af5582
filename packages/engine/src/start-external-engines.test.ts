import {once} from 'node:events';
import {createServer} from 'node:http';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import type {ModelStore, StoredModel, WorkResponse} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {chat, countToThree, exists, spoken, take} from '../../../test/support/engine-trial.ts';
import {tinyModel, tinyModelPath, trialHost, until} from '../../../test/support/engine-trial.ts';
import {startForeignServer} from '../../../test/support/foreign-server.ts';
import type {ExternalEngineConfig} from './external-engine.ts';
import {startExternalEngines} from './start-external-engines.ts';
import type {Local} from './start-external-engines.ts';

const noModels: ModelStore = {
  list: () => [],
  find: () => undefined,
  onChange: () => ({[Symbol.dispose]: () => {}}),
  [Symbol.asyncDispose]: async () => {},
};

async function external(t: ExecutionContext, url: string, changes: Partial<ExternalEngineConfig> = {}): Promise<Local> {
  const engines = await trialHost(t);
  const config = {
    name: 'ext',
    url,
    apiKey: undefined,
    slots: 2,
    context: 4096,
    capabilities: ['chat'],
    ...changes,
  } as const;
  const both = await startExternalEngines([config], {engines, models: noModels}, realEnvironment());
  t.teardown(async () => both[Symbol.asyncDispose]());
  return both;
}

/** The node does not wait long for its first look; a busy machine may need a second one. */
async function firstModel({models}: Local): Promise<StoredModel> {
  await until('the models of the external engine', () => models.list().length > 0, 30_000);
  const [model] = models.list();
  if (model === undefined) throw new Error('the models of the external engine went again');
  return model;
}

test('a running llama-server is offered as loaded, answers by its own name, and outlives hearsay', async t => {
  const server = await startForeignServer(t, {model: await tinyModelPath('tiny-count-F16'), apiKey: 'secret'});
  const local = await external(t, `${server.url}/v1/`, {apiKey: 'secret'});
  const model = await firstModel(local);
  const {engines, models} = local;
  t.deepEqual(model.names, ['tiny-count-F16']);
  t.is(models.find(model.digest)?.key, model.key);
  t.like(engines.engines()[0], {state: 'ready', processor: 'external', slots: 2, unloadInMs: Infinity});
  t.is(await countToThree(engines, model), ' 1 2 3');
  t.is(engines.load(model, {context: undefined, slots: undefined, keep: true}), undefined);
  await t.throwsAsync(engines.stop(model.key), {message: /not started by hearsay/u});
  t.true(exists(server.pid));
});

test('an external engine gets no more requests than its slots, and own engines work beside it', async t => {
  const server = await startForeignServer(t, {model: await tinyModelPath('tiny-deep-F16'), alias: 'deep'});
  const local = await external(t, server.url, {slots: 1});
  const model = await firstModel(local);
  const {engines} = local;
  const seq = engines.loadSeq();
  const running = take(engines, model);
  t.true(engines.loadSeq() > seq);
  const answer = await chat(running, {tokens: 5});
  t.like(engines.reserve(model, {force: false}), {kind: 'busy', reason: 'slots'});
  await using waiting = take(engines, model, true);
  const second = chat(waiting, {tokens: 3});
  t.is(await countToThree(engines, await tinyModel('tiny-count-F16')), ' 1 2 3');
  t.is(await spoken(answer), ' 1 2 3 4 5');
  await running[Symbol.asyncDispose]();
  t.is(await spoken(await second), ' 1 2 3');
  t.is(engines.engines().length, 2);
});

test('S75: an external engine that dies fails its request with its name, is taken off the list, and comes back with its server', async t => {
  const file = await tinyModelPath('tiny-deep-F16');
  const server = await startForeignServer(t, {model: file, alias: 'deep'});
  const local = await external(t, server.url);
  const model = await firstModel(local);
  const {engines, models} = local;
  const running = take(engines, model);
  const reading = Array.fromAsync((await chat(running, {endless: true})).body);
  server.kill('SIGKILL');
  await t.throwsAsync(reading, {name: 'Fault', message: /the external engine ext failed/u});
  await running[Symbol.asyncDispose]();
  await until('its models to go', () => models.list().length === 0, 60_000);
  t.deepEqual(engines.engines(), []);
  await startForeignServer(t, {model: file, alias: 'deep', port: Number(new URL(server.url).port)});
  await until('its models to come back', () => models.list().length === 1, 60_000);
  t.is(await countToThree(engines, model), ' 1 2 3');
});

test('C66: a recording reaches an external engine under the name that the engine itself has for the model', async t => {
  const heard: Buffer[] = [];
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => heard.push(chunk));
    request.on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end(request.method === 'GET' ? '{"data":[{"id":"Org/Whisper-Big"}]}' : '{"text":"hello"}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => void server.close());
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const local = await external(t, `http://127.0.0.1:${port}`, {capabilities: ['audio']});
  const model = await firstModel(local);
  const {engines} = local;
  const form = new FormData();
  form.set('model', 'org/whisper-big');
  form.set('file', new Blob([new Uint8Array(300).fill(13)]));
  const sent = new Request('http://localhost', {method: 'POST', body: form});
  const contentType = sent.headers.get('content-type') ?? '';
  await using running = take(engines, model);
  const endpoint = '/v1/audio/transcriptions';
  const call = {endpoint, contentType, body: await sent.bytes()} as const;
  t.is(await said(await running.run(call, new AbortController().signal)), '{"text":"hello"}');
  const got = await new Response(Buffer.concat(heard), {headers: {'content-type': contentType}}).formData();
  t.deepEqual(got.getAll('model'), ['Org/Whisper-Big']);
  t.is(got.getAll('file').length, 1);
});

async function said({body}: WorkResponse): Promise<string> {
  return Buffer.concat(await Array.fromAsync(body)).toString();
}

test('a server that is not there does not hinder the start', async t => {
  const {models, engines} = await external(t, 'http://127.0.0.1:9');
  t.deepEqual(models.list(), []);
  t.deepEqual(engines.engines(), []);
});
