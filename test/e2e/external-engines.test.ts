import {once} from 'node:events';
import {writeFile} from 'node:fs/promises';
import {createServer} from 'node:http';
import type {IncomingMessage, ServerResponse} from 'node:http';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import OpenAI from 'openai';
import {chatText} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {startForeignServer} from '../support/foreign-server.ts';
import {recording} from '../support/media.ts';
import {modelFolder, tinyModel} from '../support/models.ts';
import {aliveNames, models, requests, status} from '../support/reports.ts';
import {until} from '../support/until.ts';

test.serial('a node without a model asks the external engine of another node, which shows it as loaded', async t => {
  const server = await startForeignServer(t, {
    model: tinyModel('tiny-count-F16.gguf'),
    alias: 'their-model',
    apiKey: 'k3y',
  });
  const config = join(await modelFolder(t), 'config.toml');
  await writeFile(config, `[engines.external]\nname = "vllm"\nurl = "${server.url}/v1"\nkey_env = "VLLM_KEY"\n`);
  const mesh = `external-${Math.random().toString(36).slice(2)}`;
  const one = await startDaemon(t, {name: 'one', mesh, flags: ['--config', config], variables: {VLLM_KEY: 'k3y'}});
  const port = /\/tcp\/(\d+)/u.exec((await status(one.url)).meshAddresses.join())?.[1] ?? '';
  const two = await startDaemon(t, {name: 'two', mesh, peers: [`127.0.0.1:${port}`]});
  await until('both alive', async () => (await aliveNames(two.url)).length === 2, 30_000);
  await until('the model', async () => (await models(two.url)).some(({status: state}) => state === 'loaded'), 30_000);

  const answer = await chatText(two.url, {model: 'their-model', max_tokens: 3});
  t.like(answer, {text: ' 1 2 3', done: true, status: 200});
  t.is(answer.headers.get('x-hearsay-node'), 'one');
  t.regex((await one.cli('ps')).stdout, /their-model .* external .*Forever/u);
  const stop = await two.cli('stop', 'their-model');
  t.is(stop.code, 1);
  t.regex(stop.stderr, /one: an external engine is not started by hearsay/u);
  t.is((await fetch(`${server.url}/health`)).status, 200);
});

/** Hears as vLLM does: it knows its model by one name alone, and streams a transcript in pieces of a chat. */
async function startListener(
  t: ExecutionContext,
): Promise<{readonly url: string; readonly forms: readonly FormData[]}> {
  const forms: FormData[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method === 'GET') {
      response.setHeader('content-type', 'application/json');
      response.end('{"object":"list","data":[{"id":"Org/Whisper-Big","object":"model"}]}');
      return;
    }
    const body = Buffer.concat(await Array.fromAsync<Buffer>(request));
    const headers = {'content-type': request.headers['content-type'] ?? ''};
    const form = await new Response(body, {headers}).formData();
    forms.push(form);
    const isKnown = form.get('model') === 'Org/Whisper-Big';
    const isStream = form.get('stream') === 'true';
    response.writeHead(isKnown ? 200 : 404, {'content-type': isStream ? 'text/event-stream' : 'application/json'});
    if (!isStream) return void response.end('{"text":"hello there"}');
    for (const content of ['hello', ' there']) {
      response.write(`data: ${JSON.stringify({object: 'transcription.chunk', choices: [{delta: {content}}]})}\n\n`);
    }
    response.end('data: [DONE]\n\n');
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy()); // whoever asked is gone
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close().closeAllConnections());
  const address = server.address();
  return {url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/v1`, forms};
}

test.serial(
  'C66: a recording is written down by an external engine of another node, by every name of its model',
  async t => {
    const listener = await startListener(t);
    const folder = await modelFolder(t);
    const config = async (name: string, text: string): Promise<readonly string[]> => {
      await writeFile(join(folder, name), text);
      return ['--config', join(folder, name)];
    };
    const external = `[[engines.external]]\nname = "vllm"\nurl = "${listener.url}"\ncapabilities = ["audio"]\n`;
    const names =
      '[workloads.dictation]\nmodels = ["org/whisper-big"]\nparameters = {language = "de", temperature = 0}\n' +
      '[gateway]\naliases = ["whisper-1=org/whisper-big"]\n';
    const mesh = `external-${Math.random().toString(36).slice(2)}`;
    const one = await startDaemon(t, {name: 'one', mesh, flags: await config('one.toml', external)});
    const two = await startDaemon(t, {name: 'two', mesh, flags: await config('two.toml', names)});
    await until('the model', async () => (await models(two.url)).some(({status: state}) => state === 'loaded'), 30_000);

    const client = new OpenAI({baseURL: `${two.url}/v1`, apiKey: 'any', maxRetries: 0});
    const file = new File([recording()], 'hum.wav');
    for (const model of ['Org/Whisper-Big', 'org/whisper-big', 'whisper-1', 'dictation']) {
      const {data, response} = await client.audio.transcriptions.create({model, file}).withResponse();
      t.is(data.text, 'hello there', model);
      t.is(response.headers.get('x-hearsay-node'), 'one');
    }
    t.is(await client.audio.transcriptions.create({model: 'whisper-1', file, response_format: 'text'}), 'hello there');
    const stream = await client.audio.transcriptions.create({model: 'whisper-1', file, stream: true});
    t.is((await Array.fromAsync(stream)).length, 2);
    t.deepEqual(
      listener.forms.map(form => form.get('language')),
      [null, null, null, 'de', null, null],
    );
    await until('all are whole', async () => {
      const outcomes = (await requests(one.url)).map(({outcome}) => outcome);
      return outcomes.length === 6 && outcomes.every(outcome => outcome === 'finished');
    });
  },
);

test.serial('a key that is named and missing, and a URL that is none, end the start with what to do', async t => {
  const config = join(await modelFolder(t), 'config.toml');
  await writeFile(config, '[[engines.external]]\nname = "vllm"\nurl = "http://127.0.0.1:9"\nkey_env = "NO_SUCH_KEY"\n');
  await t.throwsAsync(startDaemon(t, {flags: ['--config', config]}), {
    message: /needs its key in the variable NO_SUCH_KEY/u,
  });
  const variables = {HEARSAY_EXTERNAL_ENGINES: 'vllm=localhost'};
  await t.throwsAsync(startDaemon(t, {variables}), {message: /engines\.external in the environment must be NAME=URL/u});
});
